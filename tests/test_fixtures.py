"""The fixtures: programs that say what is found in them.

`fixtures/<CODE>-<name>/` holds `bad_*.py`, `good_*.py` and `bad_*.fixed.py`. A comment
`# expect: TML101 warning, TML201` names the findings of its line; the severity may be left out, and
`possible` stands for what is not shown by default, as it may be meant, or hardly matter. A fixed file is
what `--fix` makes of its twin or, where nothing in it is fixed safely, `--unsafe-fixes`; both are compared without such
comments.
"""

from __future__ import annotations

import io
import re
import tokenize
import warnings
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.words import banned, complaints
from torchmemlint.config.formatting import formatting
from torchmemlint.doubts import OF_WORTH, Confidence, Doubt
from torchmemlint.engine.one_file import Profile, report_of
from torchmemlint.findings import Applicability, Finding
from torchmemlint.fixes.apply import FixResult, fix_text
from torchmemlint.fixes.graphs import Arrivals
from torchmemlint.rules.base import Rule
from torchmemlint.rules.registry import all_rules, by_code

ROOT = Path(__file__).parent.parent / "fixtures"
RULES = [rule for rule in all_rules() if not rule.code.startswith("TML0")]
CHECKED_TOGETHER = ("12", "3", "4", "5", "6", "7", "8")  # first digits of codes: families whose findings meet in a file
COMMENT = re.compile(r"# expect: (?P<findings>.*)")
EXPECTED = re.compile(r"(?P<code>TML\d{3})(?: (?P<severity>error|warning|advice|possible))?")


@dataclass(frozen=True, order=True)
class Expected:
    """One finding that a comment announces; severity "" stands for any."""

    line: int
    code: str
    severity: str = ""

    def __str__(self) -> str:
        return f"line {self.line}: {self.code} {self.severity}".rstrip()


def is_program(path: Path) -> bool:
    return not path.name.endswith(".fixed.py")


FILES = sorted(ROOT.glob("TML*/*.py"))
PROGRAMS = [path for path in FILES if is_program(path)]
FIXED = [path for path in FILES if not is_program(path)]


def short(path: Path) -> str:
    return f"{path.parent.name[:6]}-{path.name.removesuffix('.py')}"


@cache
def read(path: Path) -> str:
    return path.read_bytes().decode()


@cache
def expectations(path: Path) -> tuple[Expected, ...]:
    """What the comments of a file announce, in order."""
    found = []
    for token in tokenize.generate_tokens(io.StringIO(read(path)).readline):
        if token.type == tokenize.COMMENT and (comment := COMMENT.fullmatch(token.string)):
            for part in comment["findings"].split(", "):
                expected = EXPECTED.fullmatch(part)
                assert expected, f"{path}:{token.start[0]}: {part!r} is no expectation"
                found.append(Expected(token.start[0], expected["code"], expected["severity"] or ""))
    return tuple(sorted(found))


def without_expectations(text: str) -> str:
    return re.sub(r"[ \t]*# expect: TML.*", "", text)


def codes_for(path: Path) -> frozenset[str]:
    """The rules that a fixture is checked with: its own, and of its family and those checked with it what is on."""
    own = path.parent.name[:6]
    digits = next(group for group in CHECKED_TOGETHER if own[3] in group)
    return frozenset(rule.code for rule in RULES if rule.code == own or (rule.on and rule.code[3] in digits))


@cache
def known(path: Path, text: str) -> tuple[Finding, ...]:
    from torchmemlint.engine.checking import check_text

    found = check_text(text, path, codes_for(path))
    own = path.parent.name[:6]
    doubted = {
        code: OF_WORTH | ({Doubt.INTENDED, Doubt.WANTED, Doubt.ENVIRONMENT} if code == own else set())
        for code in codes_for(path)
    }
    return tuple(one for one in found if _is_shown(one) or {*one.doubts} <= doubted[one.code])


def check(path: Path, text: str) -> list[Finding]:
    """The findings that are shown where nothing else is asked for, and those that are doubted only to be worth it."""
    return list(known(path, text))


@cache
def fix(path: Path, text: str) -> FixResult:
    return fix_text(
        text,
        check(path, text),
        lambda changed: check(path, changed),
        unsafe=not has_safe_fix(path),
        arriving=lambda changed: arriving(path, changed),
        formatting=formatting(path.parent),
    )


def arriving(path: Path, text: str) -> Arrivals:
    """Where graphs go in it, by which a fix is judged."""
    return report_of(text, path, Profile(codes_for(path)), comparing=True).arriving


@cache
def has_safe_fix(path: Path) -> bool:
    found = check(path, read(_twin(path)))
    return any(one.fix is not None and one.fix.applicability is Applicability.SAFE for one in found)


@pytest.mark.parametrize("path", PROGRAMS, ids=short)
def test_exactly_the_announced_findings_are_reported(path: Path) -> None:
    reported = Counter(
        Expected(one.span.start.row, one.code, one.severity.value if _is_shown(one) else "possible")
        for one in check(path, read(path))
    )
    missed = []
    for expected in sorted(expectations(path), key=lambda expected: not expected.severity):
        match = next((found for found in sorted(reported) if _matches(found, expected)), None)
        if match is None:
            missed.append(expected)
        else:
            reported[match] -= 1
            reported += Counter()  # drops what is used up
    surplus = sorted(reported.elements())
    assert (list(map(str, missed)), list(map(str, surplus))) == ([], []), f"missed, surplus in {path}"


def _is_shown(finding: Finding) -> bool:
    return finding.confidence is not Confidence.POSSIBLE


def _matches(found: Expected, expected: Expected) -> bool:
    return (found.line, found.code) == (expected.line, expected.code) and (
        expected.severity in ("", found.severity) and (found.severity != "possible" or expected.severity == "possible")
    )


@pytest.mark.parametrize("path", PROGRAMS, ids=short)
def test_every_finding_carries_its_evidence(path: Path) -> None:
    for finding in check(path, read(path)):
        assert finding.evidence, finding
        assert finding.message
        assert finding.name == by_code()[finding.code].name
        assert finding.severity.rank <= by_code()[finding.code].severity.rank


@pytest.mark.parametrize("path", PROGRAMS, ids=short)
def test_every_finding_speaks_plainly(path: Path) -> None:
    for finding in check(path, read(path)):
        assert not list(complaints(finding.message)), finding.message
        for evidence in finding.evidence:
            assert not list(banned(evidence.message)), evidence.message
        if finding.fix is not None:
            assert not list(banned(finding.fix.message)), finding.fix.message
            assert finding.fix.message[0] == "`" or finding.fix.message[0].isupper(), finding.fix.message


@pytest.mark.parametrize("path", FIXED, ids=short)
def test_fixing_gives_exactly_the_fixed_file(path: Path) -> None:
    result = fix(path, without_expectations(read(_twin(path))))
    assert result.text == read(path)
    assert result.applied
    again = fix(path, result.text)
    assert again.text == result.text
    assert again.applied == ()


@pytest.mark.parametrize("path", [path for path in PROGRAMS if path.name.startswith("bad_")], ids=short)
def test_fixing_ends_with_a_program_that_compiles(path: Path) -> None:
    result = fix(path, read(path))
    compiles(result.text, path)
    assert fix(path, result.text).text == result.text


@pytest.mark.parametrize("path", FILES, ids=short)
def test_the_file_compiles_and_is_clean_text(path: Path) -> None:
    text = read(path)
    compiles(text, path)
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
    assert all(line == line.rstrip() for line in text.splitlines())


def compiles(text: str, path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compile(text, str(path), "exec", dont_inherit=True)


@pytest.mark.parametrize("path", FILES, ids=short)
def test_the_name_says_what_the_file_is(path: Path) -> None:
    own = path.parent.name[:6]
    expected = expectations(path)
    if not is_program(path):
        assert _twin(path).exists()
        assert not expected
    elif path.name.startswith("bad_"):
        assert own in {one.code for one in expected}
    else:
        assert path.name.startswith("good_")
        assert not expected


@pytest.mark.parametrize("folder", sorted({path.parent for path in FILES}), ids=lambda folder: folder.name)
def test_a_folder_is_named_after_its_rule(folder: Path) -> None:
    code, _, name = folder.name.partition("-")
    rule = by_code().get(code)
    if rule is not None:
        assert rule.name == name


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_every_rule_has_its_fixtures(rule: Rule) -> None:
    own = [path for path in FILES if path.parent == ROOT / f"{rule.code}-{rule.name}"]
    bad = [path for path in own if is_program(path) and path.name.startswith("bad_")]
    good = [path for path in own if path.name.startswith("good_")]
    assert bad
    assert len(good) >= len(bad)
    if rule.fix is Applicability.SAFE:
        assert any(not is_program(path) for path in own), f"{rule.code} has a safe fix and no fixed file"


def _twin(path: Path) -> Path:
    return path.with_name(path.name.replace(".fixed.py", ".py"))


def test_expectations_are_read_from_comments_only() -> None:
    bad = next(path for path in PROGRAMS if expectations(path))
    first = expectations(bad)[0]
    assert first.code in by_code() or first.code.startswith("TML")
    assert f"# expect: {first.code}" in read(bad).splitlines()[first.line - 1]
    assert "# expect" not in without_expectations(read(bad))
