"""Applying fixes to one file's text, checking each change, and taking back those that do harm."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace as replace_fields
from pathlib import Path

from torchmemlint.codes import OF_GRAPHS, OF_PASSES
from torchmemlint.config.formatting import USUAL, Formatting
from torchmemlint.findings import Applicability, Finding, Fix
from torchmemlint.fixes.edits import BOM, EditError, Replacement, TextIndex, compatible, composed, replace, resolve
from torchmemlint.fixes.eligibility import eligible
from torchmemlint.fixes.graphs import Arrivals, Tested, first_difference
from torchmemlint.fixes.identity import Change, compare
from torchmemlint.fixes.idle import idle_detaching
from torchmemlint.fixes.tidying import tidied
from torchmemlint.immutable import immutable
from torchmemlint.syntax import cst
from torchmemlint.syntax.patterns import too_deep
from torchmemlint.syntax.text import parse_with_libcst

# What is not told beside others: that something has no effect, where the pass is reported that it was meant for.
_STANDS_FOR = {"TML202": OF_PASSES}

_ALLOWED = "made with `--unsafe-fixes`"

Recheck = Callable[[str], Sequence[Finding]]


@immutable()
class FixResult:
    """The text after fixing, and what was done to get there."""

    text: str
    applied: tuple[Finding, ...]  # fixed, in the order of the rounds; positions are those of their round
    rolled_back: tuple[tuple[Finding, str], ...]  # not fixed after all, each with the reason
    findings: tuple[Finding, ...]  # what is left to report on `text`


@immutable()
class _Candidate:
    """A finding and a fix of it that may be tried, with its edits as replacements of the round's text."""

    finding: Finding
    fix: Fix
    replacements: tuple[Replacement, ...]
    others: tuple[Fix, ...] = ()  # to be tried if this one is refused

    @classmethod
    def of(cls, finding: Finding, fixes: Sequence[Fix], text: str, index: TextIndex) -> _Candidate:
        """Try the first of some fixes of a finding first."""
        return cls(finding, fixes[0], resolve(text, fixes[0].edits, index), tuple(fixes[1:]))

    @property
    def is_safe(self) -> bool:
        return self.fix.applicability is Applicability.SAFE

    @property
    def fixed(self) -> Finding:
        """The finding with the fix that is tried."""
        return self.finding if self.finding.fix is self.fix else replace_fields(self.finding, fix=self.fix)


def fix_text(
    text: str,
    findings: Sequence[Finding],
    recheck: Recheck,
    *,
    unsafe: bool,
    wanted: Callable[[Finding], bool] = lambda finding: True,
    arriving: Callable[[str], Arrivals] = lambda text: frozenset(),
    formatting: Formatting = USUAL,
    tested: Tested = lambda name: None,
) -> FixResult:
    """Apply the eligible fixes of the `wanted` ones of `findings` to `text`, in rounds, until no further one is kept.

    `recheck(text)` gives the findings of a changed text; `findings` must be what it gives for `text`.
    `arriving(text)` says where graphs go that something may need, in what was rechecked last, or in the text itself.
    `formatting` is that of the project; `tested` names a test that takes the gradient of what a function returns.
    A fix is kept only if the file still parses, its finding is gone and no other finding has appeared, unless that one
    is about what the fix wrote, and is less severe or fixed next: a loss that is detached where it was added up may
    show a graph that is built for nothing. And a safe fix must lose no graph that something may need, an unsafe one
    none that is surely differentiated. What is refused is tried as its narrower fix, and with `unsafe` as an unsafe
    one. Every round that changes the text puts fewer or less severe findings, or those of later rules, in the place of
    others, so the rounds come to an end, and the last one leaves the text alone: applying the result again changes
    nothing.
    """
    applied: list[Finding] = []
    while True:
        kept, refused, outcome = _round(
            text, findings, recheck, arriving, formatting, tested, unsafe=unsafe, wanted=wanted
        )
        if not kept:
            return FixResult(text, tuple(applied), tuple(refused), tuple(findings))
        applied += [candidate.fixed for candidate in kept]
        text, findings = outcome


def _round(
    text: str,
    findings: Sequence[Finding],
    recheck: Recheck,
    arriving: Callable[[str], Arrivals],
    formatting: Formatting,
    tested: Tested,
    *,
    unsafe: bool,
    wanted: Callable[[Finding], bool],
) -> tuple[list[_Candidate], list[tuple[Finding, str]], tuple[str, Sequence[Finding]]]:
    """Try the fixes that go together on one text.

    Gives those kept, those refused with reasons, and the new text with its findings. Fixes that conflict with
    one kept are left for the next round; those that conflict only with refused ones get their turn here.
    """
    index = TextIndex.of(text)
    waiting: list[_Candidate] = []
    refused: list[tuple[Finding, str]] = []
    for finding in sorted(findings, key=lambda finding: (finding.span, finding.code, finding.message)):
        if finding.fix is not None and eligible(finding, unsafe=unsafe) and wanted(finding):
            try:
                waiting.append(_Candidate.of(finding, list(_ways(finding.fix, unsafe=unsafe)), text, index))
            except EditError as problem:
                refused.append((finding, str(problem)))
    if not waiting:
        return [], refused, (text, findings)
    trial = _Trial(text, findings, recheck, arriving, formatting, tested, unsafe=unsafe)
    later: list[_Candidate] = []
    if any(candidate.finding.code in OF_PASSES for candidate in waiting):  # then nothing may be left to detach
        later = [candidate for candidate in waiting if candidate.finding.code in OF_GRAPHS]
        waiting = [candidate for candidate in waiting if candidate.finding.code not in OF_GRAPHS]
    while waiting:
        chosen = set(compatible([candidate.replacements for candidate in waiting]))
        kept: list[_Candidate] = []
        harmful: list[tuple[_Candidate, str]] = []
        for safe in (True, False):
            kept = trial.keep(kept, [waiting[n] for n in sorted(chosen) if waiting[n].is_safe is safe], harmful)
        waiting = [candidate for number, candidate in enumerate(waiting) if number not in chosen]
        if kept:
            return kept, refused, trial.outcome(kept)
        for one, why in harmful:
            if one.others:
                waiting.append(_Candidate.of(one.finding, one.others, text, index))
            else:
                refused.append((one.finding, why))
        if not waiting:
            waiting, later = later, []
    return [], refused, (text, findings)


def _ways(fix: Fix, *, unsafe: bool) -> Iterator[Fix]:
    """Yield a fix and what may be tried if it is refused: one that changes less, or as an unsafe one."""
    narrower = fix.narrower
    if narrower is not None and fix.applicability is not Applicability.SAFE:
        narrower = replace_fields(narrower, applicability=fix.applicability)
    for one in (fix, narrower):
        if one is not None and one.edits and (unsafe or one.applicability is Applicability.SAFE):
            yield one
    if unsafe and fix.applicability is Applicability.SAFE:
        for one in (fix, narrower):
            if one is not None and one.edits and one.applicability is Applicability.SAFE:
                yield replace_fields(one, applicability=Applicability.UNSAFE)


class _Trial:
    """Judges sets of changes to one text."""

    def __init__(
        self,
        text: str,
        findings: Sequence[Finding],
        recheck: Recheck,
        arriving: Callable[[str], Arrivals],
        formatting: Formatting,
        tested: Tested,
        *,
        unsafe: bool,
    ) -> None:
        self.text = text
        self.unsafe = unsafe
        self.formatting = formatting
        self.tested = tested
        self.arriving = arriving
        self.before = arriving(text)
        self.findings = findings
        self.recheck = recheck
        self.compiles = _compile_problem(text) is None
        self._last: tuple[list[_Candidate], tuple[str, Sequence[Finding]]] = ([], (text, findings))

    def keep(
        self, accepted: list[_Candidate], group: list[_Candidate], refused: list[tuple[_Candidate, str]]
    ) -> list[_Candidate]:
        """`accepted` and as many of `group` as do no harm with it; the others go to `refused`.

        All at once first, then by halves, so that one bad fix among n costs about log n checks.
        """
        if not group:
            return accepted
        problem = self.problem(accepted + group)
        if problem is None:
            return accepted + group
        if len(group) == 1:
            refused.append((group[0], problem))
            return accepted
        half = len(group) // 2
        accepted = self.keep(accepted, group[:half], refused)
        return self.keep(accepted, group[half:], refused)

    def problem(self, candidates: list[_Candidate]) -> str | None:
        """Why these changes must not be made together; None if they may."""
        edits = tuple(sorted({one for candidate in candidates for one in candidate.replacements}))
        problem, idle = self._harm(candidates, edits)
        if problem is None and idle:
            self._harm(candidates, idle)  # if that does harm, the detaching stays
        return problem

    def _harm(
        self, candidates: list[_Candidate], edits: tuple[Replacement, ...]
    ) -> tuple[str | None, tuple[Replacement, ...]]:
        """Why these edits must not be made for some fixes, and the edits with which nothing is detached for nothing.

        If there is no reason, they are what was judged last.
        """
        replacements = tidied(self.text, edits, self.formatting)
        text = replace(self.text, replacements)
        problem = _compile_problem(text) if self.compiles else _parse_problem(text)
        if problem is not None:
            return f"the file would not parse: {problem}", ()
        after = self.recheck(text)
        fixed = [candidate.finding for candidate in candidates]
        change = Change(self.text, text, replacements)
        result = compare(change, self.findings, after, fixed)
        fixed_ids = {id(finding) for finding in fixed}
        for finding in result.kept:
            if id(finding) in fixed_ids:
                return f"{finding.code} would still be reported", ()
        index = TextIndex.of(text)
        worse = [new for new in result.new if not any(_uncovers(one, new, change, index) for one in candidates)]
        if worse:
            new = min(worse, key=lambda finding: finding.span)
            return f"it would bring {new.code} ({new.name}) at line {new.span.start.row}: {new.message}", ()
        safe = all(candidate.is_safe for candidate in candidates)
        path, arriving = fixed[0].filename, self.arriving(text)
        lost = self._lost(change, path, arriving, safe=safe)
        if lost is not None:
            may_be_unsafe = safe and not self.unsafe and self._lost(change, path, arriving, safe=False) is None
            return f"{lost} ({_ALLOWED})" if may_be_unsafe else lost, ()
        self._last = (candidates, (text, after))
        idle = idle_detaching(change, path, self.before, arriving, safe=safe)
        return None, composed(self.text, replacements, idle) if idle else ()

    def _lost(self, change: Change, path: Path, arriving: Arrivals, *, safe: bool) -> str | None:
        return first_difference(change, path, self.before, arriving, safe=safe, tested=self.tested)

    def outcome(self, candidates: list[_Candidate]) -> tuple[str, Sequence[Finding]]:
        """The text and findings after changes that were judged harmless."""
        if self._last[0] != candidates and self.problem(candidates) is not None:
            raise AssertionError("changes that were judged harmless no longer are")  # recheck is not a function
        return self._last[1]


def _uncovers(candidate: _Candidate, new: Finding, change: Change, index: TextIndex) -> bool:
    """Does a fix bring a finding about what it wrote, less severe than the one that it removes?

    Or as severe, if it can be fixed in turn and is a later rule's, so that this comes to an end: batches that workers
    load are worth pinning. Or one that was left unsaid beside the finding, since both are of one cause.
    """
    old = candidate.fixed
    if old.code in _STANDS_FOR.get(new.code, ()) and new.severity.rank <= old.severity.rank:
        return True
    if new.severity.rank >= old.severity.rank and not (new.severity is old.severity and _follows(new, old)):
        return False
    shown = [new.span, *(evidence.span for evidence in new.evidence if evidence.filename is None)]
    for replaced in candidate.replacements:
        low, high = change.image(replaced.start)
        if any(index.offset(span.start) <= low and high <= index.offset(span.end) for span in shown):
            return True
    return False


def _follows(new: Finding, old: Finding) -> bool:
    """Is a finding of a later rule, with a fix that is made where that of another one is?"""
    if new.code <= old.code or new.fix is None or old.fix is None or not new.fix.edits:
        return False
    return new.fix.applicability in (Applicability.SAFE, old.fix.applicability)


def _parse_problem(text: str) -> str | None:
    """Why libcst cannot read the text; None if it can."""
    if too_deep(text):
        return "patterns are nested too deeply for libcst"
    try:
        parse_with_libcst(text.removeprefix(BOM))
    except cst.ParserSyntaxError as error:
        return f"{error.message} at line {error.raw_line}"
    return None


def _compile_problem(text: str) -> str | None:
    """Why this Python cannot compile the text; None if it can.

    Finds what a grammar lets pass: `return` outside a function, a `__future__` import that is no longer first.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(text.removeprefix(BOM), "<fixed>", "exec", dont_inherit=True)
        except SyntaxError as error:
            return f"{error.msg} at line {error.lineno}"
        except (ValueError, RecursionError, MemoryError) as error:
            return str(error) or type(error).__name__
    return None
