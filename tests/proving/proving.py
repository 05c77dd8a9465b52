"""Each fix of a program on its own, and all of them: does the program still do what it did?"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

from torchmemlint.doubts import Confidence
from torchmemlint.engine import context
from torchmemlint.engine.one_file import ABOUT_THE_RUN, Profile, Reported, report_of
from torchmemlint.findings import Applicability, Finding
from torchmemlint.fixes.apply import FixResult, fix_text
from torchmemlint.fixes.edits import apply_edits
from torchmemlint.fixes.eligibility import eligible
from torchmemlint.rules.registry import all_rules

from .observing import Observed, observe, same

CODES = frozenset(rule.code for rule in all_rules()) - ABOUT_THE_RUN
MENDING = "mended"
MENDED = "backward through the graph a second time"  # an exception that some fixes are there to prevent
_CAUGHT = f"Trying to {MENDED}"[:40]


EXPLAINED = {  # what a rule is there to change, as its page says
    "TML107": {"left": "gradients that are zeroed before any step are not computed"},
}


@dataclass(frozen=True)
class Difference:
    """What a set of fixes changes in what a program does."""

    codes: tuple[str, ...]  # of the fixes
    safe: bool
    what: str
    messages: tuple[str, ...]
    after: dict[str, str]


@dataclass
class Proof:
    """What came of one program."""

    raised: str = ""  # it cannot be run as it is
    safe: int = 0
    unsafe: int = 0
    mended: int = 0  # fixes that prevent an exception
    withheld: list[str] = field(default_factory=list)  # why fixes that change something are refused
    differences: list[Difference] = field(default_factory=list)


def prove(files: Mapping[str, str], drive: str = "", *, unsafe: bool = True) -> Proof:
    """Run a program before and after each of its safe fixes, and after all; with `unsafe` also the unsafe ones.

    The fixes are made without the linter's re-check, which takes longest, unless something differs or `unsafe` is set:
    it can only take fixes back.
    """
    before = observe(files, drive)
    if before.error and MENDED not in before.error:
        return Proof(raised=before.error)
    found = Proof()
    tried: set[tuple[tuple[str, str], ...]] = set()
    for variant in _variants(files, found, unsafe=unsafe):
        key = tuple(sorted(variant.files.items()))
        if not variant.fixed or key in tried:
            continue
        tried.add(key)
        what = _changed(before, variant, drive)
        if what and variant.rechecked is not None:
            variant = variant.rechecked()
            what = _changed(before, variant, drive)
        if what == MENDING:
            found.mended += 1
        elif what and (reason := variant.refused()):
            found.withheld.append(reason)
        elif what and not difference(before, observe(files, drive)):  # else it does something else every time
            messages = tuple(map(_message, variant.fixed))
            found.differences.append(Difference(variant.codes, variant.safe, what, messages, variant.files))
    return found


def _changed(before: Observed, variant: _Variant, drive: str) -> str:
    explained = {name for code in variant.codes for name in EXPLAINED.get(code, ())}
    return difference(before, observe(variant.files, drive), explained)


def _message(finding: Finding) -> str:
    fix = finding.fix.message if finding.fix is not None else ""
    return f"{finding.span.start.row}: {finding.message} [{fix}]"


@dataclass(frozen=True)
class _Variant:
    """A program with some fixes; `refused` says why the linter would not make them, "" if it would."""

    files: dict[str, str]
    safe: bool
    fixed: list[Finding]
    refused: Callable[[], str] = str
    rechecked: Callable[[], _Variant] | None = None  # those of the fixes that the re-check leaves

    @property
    def codes(self) -> tuple[str, ...]:
        return tuple(sorted({finding.code for finding in self.fixed}))


def _variants(files: Mapping[str, str], found: Proof, *, unsafe: bool) -> Iterator[_Variant]:
    with tempfile.TemporaryDirectory() as place:
        root = Path(place).resolve()
        for name, text in files.items():
            (root / name).write_text(text, encoding="utf-8")
        context.forget()
        profile = Profile(CODES, root=root if len(files) > 1 else None, confidence=Confidence.POSSIBLE)
        checks = {name: cache(partial(_reported, root / name, profile)) for name in files}
        reports = {name: report_of(text, root / name, profile).findings for name, text in files.items()}

        def whole(safe: bool, *, checked: bool) -> _Variant:
            made = dict(files)
            fixed: list[Finding] = []
            for name, findings in reports.items():
                if any(_is_fixable(one) and eligible(one, unsafe=not safe) for one in findings):
                    result = _fixed(files[name], findings, checks[name] if checked else _nothing, unsafe=not safe)
                    made[name] = result.text
                    fixed += result.applied
            return _Variant(made, safe, fixed, rechecked=None if checked else partial(whole, safe, checked=True))

        fixable = [(name, one) for name, findings in reports.items() for one in findings if _is_fixable(one)]
        for name, finding in fixable:
            assert finding.fix is not None
            safe = finding.fix.applicability is Applicability.SAFE
            if safe or unsafe:
                found.safe, found.unsafe = found.safe + safe, found.unsafe + (not safe)
                after = apply_edits(files[name], finding.fix.edits)
                refusal = _refusal(files[name], reports[name], checks[name], finding)
                yield _Variant({**files, name: after}, safe, [finding], refusal)
        if found.safe > 1 or unsafe:
            yield whole(True, checked=unsafe)
        if unsafe:
            yield whole(False, checked=True)
    context.forget()


def _reported(path: Path, profile: Profile, text: str) -> Reported:
    return report_of(text, path, profile, comparing=True)


def _nothing(text: str) -> Reported:
    """A re-check that finds nothing, and lets every fix be made."""
    return Reported([])


def _fixed(
    text: str,
    findings: list[Finding],
    reported: Callable[[str], Reported],
    *,
    unsafe: bool,
    wanted: Callable[[Finding], bool] = lambda finding: True,
) -> FixResult:
    return fix_text(
        text,
        findings,
        lambda text: reported(text).findings,
        unsafe=unsafe,
        wanted=wanted,
        arriving=lambda text: reported(text).arriving,
    )


def _refusal(
    text: str, findings: list[Finding], reported: Callable[[str], Reported], finding: Finding
) -> Callable[[], str]:
    def refused() -> str:
        result = _fixed(text, findings, reported, unsafe=True, wanted=lambda one: one is finding)
        return result.rolled_back[0][1] if result.rolled_back else ""

    return refused


def _is_fixable(finding: Finding) -> bool:
    return finding.fix is not None and bool(finding.fix.edits) and finding.fix.applicability is not Applicability.HINT


def difference(before: Observed, after: Observed, explained: Set[str] = frozenset()) -> str:
    """What is different, in words; MENDING if an exception is gone or comes later, or another does."""
    further = before.error != after.error or len(after.losses) > len(before.losses)
    if before.error and further and _goes_on(before, after):
        return MENDING
    for name in ("error", "losses", "gradients", "left", "weights"):
        one, other = getattr(before, name), getattr(after, name)
        if name not in explained and not same(one, other):
            return f"{name}: {_shown(one, other)}"
    if before.passes != after.passes:
        return f"passes: {_shown(before.passes, after.passes)}"
    if before.output == after.output:
        return ""
    return MENDING if _without_caught(before) == after.output else f"output: {_shown(before.output, after.output)}"


def _without_caught(seen: Observed) -> str:
    """What is printed, but for the exception that fixes are there to prevent: scripts print its beginning."""
    return "".join(line for line in seen.output.splitlines(keepends=True) if line.strip() != _CAUGHT)


def _goes_on(before: Observed, after: Observed) -> bool:
    """Does it do the same up to the backward pass that raised?"""
    kept = len(before.losses)
    return same(before.losses, after.losses[:kept]) and same(before.gradients, after.gradients[: len(before.gradients)])


def _shown(one: object, other: object) -> str:
    if isinstance(one, list) and isinstance(other, list):
        for number, (left, right) in enumerate(zip(one, other, strict=False)):
            if not same(left, right):
                return f"number {number}: {str(left)[:300]} became {str(right)[:300]}"
        return f"{len(one)} became {len(other)}"
    return f"{str(one)[:400]!r} became {str(other)[:400]!r}"
