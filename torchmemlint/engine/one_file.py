"""One file, from its bytes to the findings that are reported."""

from __future__ import annotations

import enum
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from torchmemlint.config.contracts import Framework
from torchmemlint.config.limits import DEFAULT, MEGABYTE, Limits
from torchmemlint.doubts import Confidence, is_sure
from torchmemlint.engine.cache.snapshot import digest_of
from torchmemlint.engine.run import FixedFile, RuleFailure
from torchmemlint.findings import Applicability, ContextFile, Finding, Fix, Position, Severity, Span
from torchmemlint.fingerprints import subject
from torchmemlint.immutable import immutable
from torchmemlint.source.decoding import LimitReached, SourceText, UnreadableFile, decode, read
from torchmemlint.source.directives import MARKERS
from torchmemlint.source.loading import is_notebook, load
from torchmemlint.source.naming import names_one
from torchmemlint.source.suppressions import Catalogue

if TYPE_CHECKING:
    from torchmemlint.baseline import Entry
    from torchmemlint.fixes.apply import FixResult
    from torchmemlint.flow.fact.details import Arrival
    from torchmemlint.flow.facts import FileFacts
    from torchmemlint.flow.names.needs import Needs
    from torchmemlint.flow.project import Project
    from torchmemlint.source.cells import CellProgram
    from torchmemlint.source.notebook import NotebookText

UNREADABLE = "TML000"
ABOUT_THE_RUN = frozenset((UNREADABLE, "TML001", "TML002"))  # rules that the engine answers, not the analysis


class Fixing(enum.Enum):
    """What to do with the fixes."""

    NONE = "none"
    PREVIEW = "preview"  # work out what would change
    WRITE = "write"


@immutable()
class Profile:
    """What to do with a file: the same for many files of a run."""

    codes: frozenset[str]
    severities: tuple[tuple[str, Severity], ...] = ()
    fixing: Fixing = Fixing.NONE
    unsafe: bool = False
    root: Path | None = None  # of the project whose other files give the context; None: the file stands alone
    target_torch: str | None = None  # the oldest release that the code supports; None: the newest
    contracts: tuple[Framework, ...] = ()  # of frameworks, besides the linter's own
    spared: tuple[Entry, ...] = ()  # findings that are known: neither mended nor reported
    ignoring: str | None = None  # silence findings by comments instead of mending them, and give this reason
    noqa: bool = True  # do comments in this language silence findings?
    comments: bool = True  # do any comments?
    trust: tuple[tuple[str, Applicability], ...] = ()  # how far fixes of rules may be trusted: see `Fixes`
    plugins: tuple[str, ...] = ()  # what brings rules besides the linter's own and those of installed plugins
    limits: Limits = DEFAULT
    confidence: Confidence = Confidence.LIKELY  # the least that is reported
    held: tuple[tuple[str, str], ...] = ()  # findings not to be mended: `fingerprints.subject`, and why
    kept: bool = False  # are results kept for later runs, and what they rest on taken down with them?


@immutable()
class FileResult:
    """What came of one file."""

    path: Path
    findings: tuple[Finding, ...] = ()
    skipped: bool = False  # it never names torch, and has to do with no file that does
    fixed: FixedFile | None = None
    error: str | None = None  # one line, if the linter failed on it
    blameless: bool = False  # it is no fault of the linter's: the file could not be written, or a plugin failed
    details: str | None = None  # the traceback of that failure
    partly: bool = False  # there was more to follow in it than a file may take
    context: tuple[ContextFile, ...] = ()  # files that this one was the first to need for context
    digest: str | None = None  # of what was read, where the result may be kept
    needs: Needs | None = None  # what it rests on besides the file
    from_cache: bool = False  # an earlier run's
    unsure: int = 0  # further findings, which are less certain than is asked for

    @property
    def problem(self) -> str:
        """The failure with the name of the file; "" where there was none."""
        if self.error is None:
            return ""
        return f"{self.path}: {self.error}" if self.blameless else f"{self.path}: internal error: {self.error}"


@immutable()
class Reported:
    """What is reported of a text."""

    findings: list[Finding]
    unsure: int = 0  # further findings, which are less certain than is asked for
    arriving: frozenset[Arrival] = frozenset()  # where graphs go that something may need, if that is asked for


def check_file(path: Path, profile: Profile, data: bytes | None = None) -> FileResult:
    """Read, check and, if asked, fix one file. Never raises for what is wrong with the file or with a rule.

    `data` is checked instead of what lies there.
    """
    try:
        try:
            data = read(path, most_to_read(path, profile)) if data is None else data
        except UnreadableFile as problem:
            return passed_over(path, problem, profile)
        result = check_bytes(data, path, profile)
        if is_fleeting(result):
            from torchmemlint.engine import context

            context.forget()  # what is half worked out serves no other file
            return result
        if not profile.kept:
            return result
        return replace(result, digest=digest_of(data), needs=_needs(path, profile))
    except MemoryError:
        from torchmemlint.engine.watching import too_much_memory

        return passed_over(path, too_much_memory(profile.limits), profile)
    except Exception as error:  # noqa: BLE001 (one file's failure must not end the run; it is reported)
        return failed(path, error)


def passed_over(path: Path, problem: UnreadableFile, profile: Profile) -> FileResult:
    """The result for a file that was not looked at, and why."""
    return FileResult(path, tuple(_unreadable(path, problem, profile)))


def is_fleeting(result: FileResult) -> bool:
    """Was the file given up for what another machine, or the same one in another hour, might have had for it?"""
    ends = ("(limit `time`)", "(limit `memory`)")
    return any(one.code == UNREADABLE and one.message.endswith(ends) for one in result.findings)


def most_to_read(path: Path, profile: Profile) -> int | None:
    """Bytes: one more than there may be."""
    limits = profile.limits
    most = limits.bytes_of_notebook if is_notebook(path) else limits.bytes_of_source
    return most + 1 if most is not None else None


def check_bytes(data: bytes, path: Path, profile: Profile) -> FileResult:
    """The same for bytes at hand, of a file that `path` names (which is written to under `Fixing.WRITE`)."""
    relevant = may_be_relevant(data, path, profile.contracts) or is_concerned(data, path, profile)
    if is_passed_over(data, relevant):
        return FileResult(path, skipped=True)
    most = most_to_read(path, profile)
    try:
        _refuse_if_larger(len(data), most - 1 if most is not None else None)
        source = load(data, path)
    except UnreadableFile as problem:
        return FileResult(path, tuple(_unreadable(path, problem, profile)), skipped=not relevant)
    if is_notebook(path):  # what was found may stand in its outputs
        cells = source.shown.encode("utf-8", "surrogatepass")
        relevant = is_relevant(cells, profile.contracts)
        if is_passed_over(cells, relevant):
            return FileResult(path, skipped=True)
    return _checked(source, path, profile, relevant)


def _refuse_if_larger(size: int, most: int | None) -> None:
    if most is not None and size > most:
        raise LimitReached("size", f"it has more than {most / MEGABYTE:g} MB")


def check_decoded(source: SourceText, path: Path, profile: Profile) -> FileResult:
    """The same for text at hand."""
    data = source.text.encode("utf-8", "surrogatepass")
    relevant = is_relevant(data, profile.contracts) or is_concerned(data, path, profile)
    if is_passed_over(data, relevant):
        return FileResult(path, skipped=True)
    return _checked(source, path, profile, relevant)


def _checked(source: SourceText | NotebookText, path: Path, profile: Profile, relevant: bool) -> FileResult:
    # Where files are run together, what others need of it is compared only where something is to be fixed.
    at_once = profile.fixing is not Fixing.NONE and profile.ignoring is None and profile.root is None
    found = _check(source.text, source, path, profile, relevant, comparing=at_once)
    if not any(is_to_change(finding, profile) for finding in found.findings):
        placed = tuple(_placed(found.findings, source, path, profile, relevant))
        result = FileResult(path, placed, skipped=not relevant, unsure=found.unsure)
    else:
        result = _fix(source, path, profile, found, relevant)
    if not relevant or profile.root is None:
        return result
    from torchmemlint.engine import context

    project = context.project(profile.root, profile.contracts)
    return replace(result, context=tuple(project.context(path)), partly=not project.is_whole(path))


def is_to_change(finding: Finding, profile: Profile) -> bool:
    """Is the file perhaps to be changed because of this finding?"""
    if profile.fixing is Fixing.NONE:
        return False
    return profile.ignoring is not None or finding.fix is not None


def _check(
    text: str,
    source: SourceText | NotebookText,
    path: Path,
    profile: Profile,
    relevant: bool,
    *,
    comparing: bool = False,
) -> Reported:
    """What is reported of a state of a file's text."""
    found = report_of(text, path, profile, relevant=relevant, comparing=comparing)
    findings = _unspared(found.findings, text, path, profile)
    if isinstance(source, SourceText):
        return replace(found, findings=findings)
    from torchmemlint.engine import notebooks

    return replace(found, findings=notebooks.within_cells(findings, text, source.program))


def _placed(
    findings: list[Finding], source: SourceText | NotebookText, path: Path, profile: Profile, relevant: bool
) -> list[Finding]:
    """The findings of a file's text as they are reported."""
    if isinstance(source, SourceText):
        return findings
    from torchmemlint.engine import notebooks

    unreadable = of_unreadable_cells(source.program, path, profile) if relevant else []
    return notebooks.placed(findings, unreadable, source)


def of_unreadable_cells(program: CellProgram, path: Path, profile: Profile) -> list[Finding]:
    """What is reported of a notebook's cells that are passed over; places are the program's."""
    from torchmemlint.engine import notebooks

    problems = notebooks.unreadable_cells(program)
    found = [one for problem, text in problems for one in _unreadable(path, problem, profile, text)]
    why = "nothing is known about a cell that cannot be read"
    return _finished([replace(finding, why=why) for finding in found], program.shown, profile).findings


def check_source(text: str, path: Path, profile: Profile, *, relevant: bool = True) -> list[Finding]:
    """The findings that are reported of a decoded text."""
    return report_of(text, path, profile, relevant=relevant).findings


def report_of(
    text: str,
    path: Path,
    profile: Profile,
    *,
    relevant: bool = True,
    around: Project | None = None,
    pulse: Callable[[], None] | None = None,
    comparing: bool = False,
) -> Reported:
    """What is reported of a decoded text after severities and suppression comments, in order, with fingerprints.

    `around` replaces the project that this process keeps. `pulse` is called again and again on the way; what it
    raises ends the check and is passed on. `comparing`: is it also asked where graphs go?
    """
    arriving: frozenset[Arrival] = frozenset()

    def ask(facts: FileFacts) -> None:
        nonlocal arriving
        arriving = facts.arriving() if comparing else arriving

    def find(codes: frozenset[str]) -> list[Finding]:
        from torchmemlint.engine import checking, context
        from torchmemlint.engine.watching import Watch

        _refuse_if_larger(len(text), profile.limits.bytes_of_source)
        context_of = context.project(profile.root, profile.contracts) if around is None and profile.root else around
        return checking.check_text(
            text,
            path,
            codes,
            context_of,
            additions=profile.contracts,
            target=profile.target_torch,
            plugins=profile.plugins,
            pulse=Watch(profile.limits, pulse),
            nesting=int(profile.limits.nesting),
            ask=ask,
        )

    return replace(reported(find, text, path, profile, relevant=relevant), arriving=arriving)


def without_rules(profile: Profile) -> Profile:
    """The same for asking only where graphs go."""
    return replace(profile, codes=frozenset((UNREADABLE,)))


def reported(
    find: Callable[[frozenset[str]], Sequence[Finding]], text: str, path: Path, profile: Profile, *, relevant: bool
) -> Reported:
    """What is reported of a text: what `find` comes to for some rules, after severities and suppression comments.

    What is less certain than is asked for is dropped behind these comments: one that silences it is in use.
    """
    from torchmemlint.engine import audit

    codes = profile.codes - ABOUT_THE_RUN
    found: Sequence[Finding] = ()
    if relevant and (codes or UNREADABLE in profile.codes):
        try:
            found = find(codes)
        except UnreadableFile as problem:
            return _finished(_unreadable(path, problem, profile, text), text, profile)
    if profile.comments:
        found = audit.suppress(text, path, found, profile.codes, _catalogue(profile.plugins), noqa=profile.noqa)
    return _finished(found, text, profile)


def _unspared(findings: list[Finding], text: str, path: Path, profile: Profile) -> list[Finding]:
    if not profile.spared:
        return findings
    from torchmemlint.engine.sieve import Spared

    return Spared(path, profile.spared).without(findings, text)


def _needs(path: Path, profile: Profile) -> Needs | None:
    from torchmemlint.engine import context

    return context.project(profile.root, profile.contracts).needs(path) if profile.root is not None else None


def may_be_relevant(data: bytes, path: Path, additions: tuple[Framework, ...] = ()) -> bool:
    """`is_relevant` of a file's bytes; of a notebook's, which are no program: whether they mention what matters."""
    if not is_notebook(path):
        return is_relevant(data, additions)
    return any(word in data for word in _relevant_words(additions))


def is_relevant(code: bytes, additions: tuple[Framework, ...] = ()) -> bool:
    """Whether a program names torch or a framework built on it: not only in its strings and comments."""
    return names_one(code, _relevant_words(additions))


def is_concerned(data: bytes, path: Path, profile: Profile, around: Project | None = None) -> bool:
    """Whether a program that never names torch has to do with files of its project that do: see `Project.concerns`.

    `around` replaces the project that this process keeps.
    """
    if (profile.root is None and around is None) or is_notebook(path):
        return False
    from torchmemlint.engine import context
    from torchmemlint.rules.cases import CODES

    if not profile.codes & CODES:
        return False
    most = most_to_read(path, profile)
    if most is not None and len(data) >= most:
        return False
    try:
        text = decode(data).text
    except UnreadableFile:
        return False
    if around is None:
        assert profile.root is not None
        around = context.project(profile.root, profile.contracts)
    return around.concerns(path, text)


def is_passed_over(data: bytes, relevant: bool) -> bool:
    """Whether a file has nothing for us in it: neither torch nor a comment that is ours."""
    return not relevant and not any(marker in data for marker in MARKERS)


def not_checked(path: Path, why: str, profile: Profile) -> FileResult:
    """The result for a file of which nothing could be told: a finding, or an error where those are not wanted."""
    found = _unreadable(path, UnreadableFile(why), profile)
    return FileResult(path, tuple(found), error=None if found else why)


def failed(path: Path, error: Exception) -> FileResult:
    """The result for a file on which the linter itself failed, or a plugin."""
    last = traceback.format_exception_only(type(error), error)[-1].strip()
    details = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    of_plugin = isinstance(error, RuleFailure)
    text = " ".join((str(error) if of_plugin else last).split())[:500]
    return FileResult(path, error=f"plugin error: {text}" if of_plugin else text, blameless=of_plugin, details=details)


def _fix(
    source: SourceText | NotebookText, path: Path, profile: Profile, found: Reported, relevant: bool
) -> FileResult:
    from torchmemlint.config.formatting import formatting
    from torchmemlint.engine import context
    from torchmemlint.engine.ignores import ignore_all
    from torchmemlint.fixes.apply import fix_text
    from torchmemlint.fixes.write import ChangedMeanwhile, write_atomically

    # By the texts that were tried.
    known: dict[str, Reported] = {source.text: found} if profile.root is None else {}

    def check(text: str) -> Reported:
        if text not in known:
            known[text] = _check(text, source, path, profile, relevant, comparing=profile.ignoring is None)
        return known[text]

    def recheck(text: str) -> list[Finding]:
        return check(text).findings

    def arriving(text: str) -> frozenset[Arrival]:
        if text in known:
            return known[text].arriving
        return report_of(text, path, without_rules(profile), relevant=relevant, comparing=True).arriving

    def tested(name: str) -> str | None:
        return context.gradient_tests(profile.root).get(name) if profile.root is not None else None

    def placed(findings: Sequence[Finding], source: SourceText | NotebookText) -> tuple[Finding, ...]:
        return tuple(_placed(list(findings), source, path, profile, relevant))

    if profile.ignoring is None:
        held = dict(profile.held)
        result = fix_text(
            source.text,
            found.findings,
            recheck,
            unsafe=profile.unsafe,
            wanted=lambda finding: subject(finding.fingerprint) not in held,
            arriving=arriving,
            formatting=formatting(path.parent),
            tested=tested,
        )
        result = _withheld(result, held, unsafe=profile.unsafe)
    else:
        result = ignore_all(source.text, found.findings, recheck, profile.ignoring)
    if result.text == source.text:
        fixed = _fixed(path, result, source, source) if result.rolled_back else None
        return FileResult(path, placed(result.findings, source), not relevant, fixed, unsure=found.unsure)
    try:
        data = source.encode(result.text)
        if profile.fixing is Fixing.WRITE:
            write_atomically(path, data, before=source.encode())
    except (OSError, UnreadableFile) as problem:
        reason = problem.message if isinstance(problem, UnreadableFile) else problem.strerror or str(problem)
        error = f"the {'fixed text' if profile.ignoring is None else 'comments'} cannot be written: {reason}"
        if isinstance(problem, ChangedMeanwhile):
            error = "changed while it was checked: it is left as it is now, for the next run"
        left = placed(found.findings, source)
        return FileResult(path, left, not relevant, error=error, blameless=True, unsure=found.unsure)
    after = source if isinstance(source, SourceText) else load(data, path)
    fixed = _fixed(path, result, source, after)
    return FileResult(path, placed(result.findings, after), not relevant, fixed, unsure=known[result.text].unsure)


def _withheld(result: FixResult, held: dict[str, str], *, unsafe: bool) -> FixResult:
    """The result, with what must not be mended among what was taken back, and the fixes of all that as mere hints."""
    from torchmemlint.fixes.eligibility import eligible

    not_made = [one for one in result.findings if eligible(one, unsafe=unsafe) and subject(one.fingerprint) in held]
    taken_back = [*result.rolled_back, *((one, held[subject(one.fingerprint)]) for one in not_made)]
    shown = {id(one): _with_hint(one) for one, _ in taken_back}
    return replace(
        result,
        rolled_back=tuple((shown[id(one)], why) for one, why in taken_back),
        findings=tuple(shown.get(id(one), one) for one in result.findings),
    )


def _with_hint(finding: Finding) -> Finding:
    assert finding.fix is not None
    return replace(finding, fix=replace(finding.fix, applicability=Applicability.HINT))


def _fixed(
    path: Path, result: FixResult, before: SourceText | NotebookText, after: SourceText | NotebookText
) -> FixedFile:
    """What the fixes did."""
    fixed = FixedFile(path, before.text, result.text, result.applied, result.rolled_back)
    if isinstance(before, SourceText) or isinstance(after, SourceText):
        return fixed
    from torchmemlint.engine import notebooks

    return notebooks.fixed(fixed, before, after)


def _unreadable(path: Path, problem: UnreadableFile, profile: Profile, text: str | None = None) -> list[Finding]:
    if UNREADABLE not in profile.codes:
        return []
    from torchmemlint.fingerprints import with_fingerprints
    from torchmemlint.rules import registry
    from torchmemlint.source.old_python import old_python

    rule = registry.by_code()[UNREADABLE]
    message, severity = problem.message, rule.severity
    if text is not None and not isinstance(problem, LimitReached) and (old := old_python(text)):
        message, severity = f"{old} file, passed over ({problem.message})", Severity.WARNING
    severity = dict(profile.severities).get(UNREADABLE, severity)
    start = problem.position or Position(1, 1)
    span = Span(start, start)
    found = Finding(UNREADABLE, rule.name, severity, message, path, span, span, why=rule.why)
    return with_fingerprints([found], text or "")


def _finished(findings: Sequence[Finding], text: str, profile: Profile) -> Reported:
    """Those that are certain enough: sorted by place, with the configured severities and with fingerprints."""
    if not findings:
        return Reported([])
    from torchmemlint.fingerprints import with_fingerprints

    severities, trust = dict(profile.severities), dict(profile.trust)
    sure = [finding for finding in findings if finding.confidence.rank >= profile.confidence.rank]
    ordered = sorted(sure, key=lambda finding: (finding.span.start, finding.code, finding.message))
    weighed = [
        replace(finding, severity=severities.get(finding.code, finding.severity), fix=_trusted(finding, trust))
        for finding in ordered
    ]
    return Reported(with_fingerprints(weighed, text), len(findings) - len(sure))


def _trusted(finding: Finding, trust: Mapping[str, Applicability]) -> Fix | None:
    """The fix of a finding: safe only where the finding is certain, unless the settings say otherwise of its rule."""
    fix = finding.fix
    if fix is None or fix.applicability is Applicability.HINT:
        return fix
    is_unsure = fix.applicability is Applicability.SAFE and not is_sure(finding.doubts)
    applicability = trust.get(finding.code, Applicability.UNSAFE if is_unsure else fix.applicability)
    return fix if applicability is fix.applicability else replace(fix, applicability=applicability)


@lru_cache(maxsize=16)
def _relevant_words(additions: tuple[Framework, ...]) -> tuple[bytes, ...]:
    from torchmemlint.knowledge.contracts import contracts

    return tuple(word.encode() for word in contracts(additions).packages)


@lru_cache(maxsize=16)
def _catalogue(plugins: tuple[str, ...]) -> Catalogue:
    from torchmemlint.engine import audit

    return audit.catalogue(plugins)
