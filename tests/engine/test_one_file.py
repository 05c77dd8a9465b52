from pathlib import Path

import fakes
import pytest

from torchmemlint.engine.one_file import Fixing, Profile, check_bytes, check_file, check_source
from torchmemlint.findings import Applicability, Finding, Position, Severity, Span
from torchmemlint.fixes.apply import fix_text

EVERYTHING = Profile(frozenset(fakes.BY_CODE))
PATH = Path("/project/a.py")


def codes(text: str, profile: Profile = EVERYTHING) -> list[str]:
    return [finding.code for finding in check_source(text, PATH, profile)]


def only(*chosen: str) -> Profile:
    return Profile(frozenset(chosen))


@pytest.mark.parametrize(
    "line",
    [
        "LEAK101  # torchmemlint: ignore[TML101]",
        "LEAK101  # torchmemlint: ignore[TML1]",
        "LEAK101  # torchmemlint: ignore[tml101]",
        "LEAK101  # torchmemlint: ignore[graph-accumulation]: for the plots",
        "LEAK101  # torchmemlint: ignore",
        "LEAK101  # noqa: TML101",
        "LEAK101  # noqa: E501, TML1",
        "LEAK101  # noqa",
        "LEAK101  # type: ignore  # noqa: E501  # torchmemlint: ignore[TML101]",
        "LEAK101, LEAK102  # torchmemlint: ignore[TML101, TML102]",
        "f(  # torchmemlint: ignore[TML101]\n    1,\n    LEAK101,\n    2,\n)",
        "f(\n    1,\n    LEAK101,\n    2,\n)  # torchmemlint: ignore[TML101]",
        "f(\n    1,\n    LEAK101,  # torchmemlint: ignore[TML101]\n    2,\n)",
        "# torchmemlint: ignore-file[TML101] generated\nLEAK101\nLEAK101",
        "LEAK101\n\n# torchmemlint: ignore-file",
    ],
)
def test_suppressed(line: str) -> None:
    assert codes(line + "\n") == []


@pytest.mark.parametrize(
    "line",
    [
        "LEAK101",
        "# torchmemlint: ignore[TML101]\nLEAK101",
        "LEAK101\n# torchmemlint: ignore[TML101]",
        "LEAK101, '# torchmemlint: ignore[TML101]'",
        "LEAK101  # noqa: E501",
        "LEAK101  # torchmemlint: ignore[TML102]",
        "f(\n    1,  # torchmemlint: ignore[TML101]\n    LEAK101,\n)",
        "'''\n# torchmemlint: ignore-file\n'''\nLEAK101",
    ],
)
def test_not_suppressed(line: str) -> None:
    assert codes(line + "\n", only("TML101")) == ["TML101"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1  # torchmemlint: ignore[TML101]\n", "x = 1\n"),
        ("x = 1  # torchmemlint: ignore\n", "x = 1\n"),
        ("x = 1  # torchmemlint: ignore[TML101] the plots need it\n", "x = 1\n"),
        ("x = 1  # torchmemlint: ignore[]\n", "x = 1\n"),
        ("x = 1  # noqa: TML101\n", "x = 1\n"),
        ("x = 1  # noqa: E501, TML101\n", "x = 1  # noqa: E501\n"),
        ("x = 1  # noqa: TML101, E501  # why\n", "x = 1  # noqa: E501  # why\n"),
        ("x = 1  # torchmemlint: ignore[TML101]  # noqa: E501\n", "x = 1  # noqa: E501\n"),
        ("x = 1  # noqa: E501  # torchmemlint: ignore[TML101]\n", "x = 1  # noqa: E501\n"),
        ("LEAK102  # torchmemlint: ignore[TML101, TML102] why\n", "LEAK102  # torchmemlint: ignore[TML102] why\n"),
        ("LEAK102  # torchmemlint: ignore[TML102, TML102]\n", "LEAK102  # torchmemlint: ignore[TML102]\n"),
        ("# torchmemlint: ignore-file[TML101]\nx = 1\n", "x = 1\n"),
        ("def f():\n    # torchmemlint: ignore\n    pass\n", "def f():\n    pass\n"),
        ("x = 1\n# torchmemlint: ignore-file", "x = 1\n"),
        ("é = 1  # torchmemlint: ignore[TML101]\r\ny = 2\r\n", "é = 1\r\ny = 2\r\n"),
    ],
)
def test_unused_suppressions_and_their_fix(before: str, after: str) -> None:
    findings = check_source(before, PATH, EVERYTHING)
    assert [finding.code for finding in findings] == ["TML001"]
    result = fix_text(before, findings, lambda text: check_source(text, PATH, EVERYTHING), unsafe=False)
    assert (result.text, result.findings) == (after, ())


@pytest.mark.parametrize(
    ("text", "profile"),
    [
        ("LEAK101  # torchmemlint: ignore[TML101]\n", EVERYTHING),
        ("x = 1  # torchmemlint: ignore[TML102]\n", only("TML001", "TML101")),  # did not run
        ("x = 1  # torchmemlint: ignore[TML1]\n", only("TML001", "TML101")),  # did not run all
        ("x = 1  # torchmemlint: ignore[TML204]\n", only("TML001", "TML201")),
        ("x = 1  # torchmemlint: ignore[TML101]\n", only("TML101")),  # not asked for
        ("x = 1  # noqa\n", EVERYTHING),
        ("x = 1  # noqa: E501\n", EVERYTHING),
        ("x = 1  # torchmemlint: ignore[TML101, TML001]\n", EVERYTHING),
        ("x = '# torchmemlint: ignore[TML101]'\n", EVERYTHING),
        ("LEAK101  # noqa: TML101  # torchmemlint: ignore[TML101]\n", EVERYTHING),
    ],
)
def test_not_called_unused(text: str, profile: Profile) -> None:
    assert codes(text, profile) == []


@pytest.mark.parametrize(
    ("comment", "message"),
    [
        ("torchmemlint: ignore[TML999]", "Unknown rule `TML999`"),
        ("torchmemlint: ignore[TML1O1]", "did you mean `TML101`?"),
        ("torchmemlint: ignore[graph-acumulation]", "did you mean `graph-accumulation`?"),
        ("torchmemlint: ignore[E501]", "Unknown rule `E501`"),
        ("torchmemlint: ignore-file[nothing-like-it-at-all]", "Unknown rule `nothing-like-it-at-all`"),
        ("noqa: TML999", "Unknown rule `TML999`"),
        ("torchmemlint: ingore[TML101]", "Unknown directive `ingore`"),
        ("torchmemlint: disable=TML101", "Unknown directive `disable`"),
    ],
)
def test_unknown_codes(comment: str, message: str) -> None:
    (finding,) = check_source(f"x = 1  # {comment}\n", PATH, EVERYTHING)
    assert finding.code == "TML002"
    assert message in finding.message


def test_misspelt_directive_silences_nothing() -> None:
    assert codes("LEAK101  # torchmemlint: ingore[TML101]\n") == ["TML101", "TML002"]


def test_severity_order_and_fingerprints() -> None:
    profile = Profile(frozenset(fakes.BY_CODE), (("TML401", Severity.ADVICE),))
    first = check_source("LEAK401\nLEAK101\nLEAK101\n", PATH, profile)
    assert [(f.code, f.severity.value) for f in first] == [
        ("TML401", "advice"),
        ("TML101", "error"),
        ("TML101", "error"),
    ]
    prints = [finding.fingerprint for finding in first]
    assert len(set(prints)) == 3
    moved = check_source("# new\n\nLEAK401\n    \nif x:\n    LEAK101\n    LEAK101\n", PATH, profile)
    assert [finding.fingerprint for finding in moved] == prints


def test_irrelevant_file_is_skipped_without_parsing() -> None:
    result = check_bytes(b"def broken(:\n  CRASH LEAK101 \xff", PATH, EVERYTHING)
    assert (result.skipped, result.findings, result.error) == (True, (), None)


def test_suppressions_of_an_irrelevant_file_are_looked_at() -> None:
    result = check_bytes(b"x = 1  # noqa: TML101\n", PATH, EVERYTHING)
    assert result.skipped
    assert [finding.code for finding in result.findings] == ["TML001"]
    assert check_bytes(b"x = 'TML101'  # noqa\n", PATH, EVERYTHING).findings == ()


@pytest.mark.parametrize(
    ("data", "message", "severity"),
    [
        (b"import torch\ndef broken(:\n", "Syntax error", Severity.ERROR),
        (b"import torch\nprint 'x'\n", "Python 2 file, passed over", Severity.WARNING),
        (b"import torch\nx = x.cuda(async=True)\n", "Python 3.6 file, passed over (Syntax error: ", Severity.WARNING),
        (b"import torch  # \xe9\n", "not valid UTF-8", Severity.ERROR),
        (b"import torch\0\n", "null byte", Severity.ERROR),
    ],
)
def test_unreadable(data: bytes, message: str, severity: Severity) -> None:
    (finding,) = check_bytes(data, PATH, EVERYTHING).findings
    assert (finding.code, finding.severity) == ("TML000", severity)
    assert message in finding.message
    assert "\n" not in finding.message
    assert check_bytes(data, PATH, only("TML101")).findings == ()


def test_a_rule_that_raises_costs_one_file(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("torch CRASH")
    result = check_file(tmp_path / "a.py", EVERYTHING)
    assert result.error == "ZeroDivisionError: a rule divided by zero"
    assert result.details is not None
    assert "check_text" in result.details


def test_fixes_are_previewed_or_written(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b"import torch\r\nLEAK101\r\nLEAK102\r\n")
    preview = check_file(file, Profile(EVERYTHING.codes, fixing=Fixing.PREVIEW))
    assert preview.fixed is not None
    assert preview.fixed.after == "import torch\r\nmended\r\nLEAK102\r\n"
    assert b"LEAK101" in file.read_bytes()
    written = check_file(file, Profile(EVERYTHING.codes, fixing=Fixing.WRITE))
    assert file.read_bytes() == b"import torch\r\nmended\r\nLEAK102\r\n"
    assert [finding.code for finding in written.findings] == ["TML102"]
    assert check_file(file, Profile(EVERYTHING.codes, fixing=Fixing.WRITE)).fixed is None


@pytest.mark.parametrize(
    ("name", "applicability"),
    [
        ("LEAK101", Applicability.SAFE),
        ("LEAK101_GIVEN", Applicability.UNSAFE),
        ("LEAK201", Applicability.UNSAFE),
        ("LEAK201_GIVEN", Applicability.UNSAFE),
        ("LEAK102_GIVEN", None),
    ],
)
def test_only_the_fix_of_a_certain_finding_is_safe(name: str, applicability: Applicability | None) -> None:
    (finding,) = check_source(f"{name}\n", PATH, EVERYTHING)
    assert (finding.fix.applicability if finding.fix is not None else None) is applicability


def test_the_fix_of_a_doubted_finding_needs_the_word(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("import torch\nLEAK101_GIVEN\n")
    check_file(path, Profile(EVERYTHING.codes, fixing=Fixing.WRITE))
    assert path.read_text() == "import torch\nLEAK101_GIVEN\n"
    check_file(path, Profile(EVERYTHING.codes, fixing=Fixing.WRITE, unsafe=True))
    assert path.read_text() == "import torch\nmended\n"


def test_a_statement_that_ends_after_its_newline(monkeypatch: pytest.MonkeyPatch) -> None:
    span = Span(Position(1, 1), Position(1, 2))
    statement = Span(Position(1, 1), Position(2, 1))
    finding = Finding("TML101", "graph-accumulation", Severity.ERROR, "", PATH, span, statement)
    monkeypatch.setattr("torchmemlint.engine.checking.check_text", lambda *_, **__: [finding], raising=False)
    assert codes("x\ny  # torchmemlint: ignore\n", only("TML101")) == ["TML101"]
