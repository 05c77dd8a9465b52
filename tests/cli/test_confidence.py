"""`--confidence` and the setting of that name. (The rules are stand-ins: see `fakes`.)"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from torchmemlint.baseline import Baseline, sift
from torchmemlint.doubts import Doubt
from torchmemlint.findings import Finding, Position, Severity, Span

from .conftest import Run

CODE = "import torch\nx = LEAK101\ny = LEAK102_GIVEN\nz = LEAK401_MODE\n"
ALL = ["TML101", "TML102", "TML401"]
EACH = [("certain", ALL[:1]), ("likely", ALL[:2]), ("possible", ALL)]


@pytest.fixture
def code(project: Path) -> Path:
    """A file with a certain, a likely and a possible finding."""
    (project / "a.py").write_text(CODE)
    return project / "a.py"


def codes(run: Run, *arguments: str) -> list[str]:
    return [finding["code"] for finding in json.loads(run("--output-format=json", *arguments).out)]


def test_what_is_only_possible_is_not_reported(run: Run, code: Path) -> None:
    assert codes(run) == ALL[:2]


@pytest.mark.parametrize(("confidence", "expected"), EACH)
def test_the_option_says_how_certain_findings_are(run: Run, code: Path, confidence: str, expected: list[str]) -> None:
    assert codes(run, "--confidence", confidence) == expected
    assert codes(run, "--config", f"confidence = '{confidence}'") == expected


@pytest.mark.parametrize(("confidence", "expected"), EACH)
def test_the_configuration_does_and_the_option_wins(run: Run, code: Path, confidence: str, expected: list[str]) -> None:
    (code.parent / ".torchmemlint.toml").write_text(f'confidence = "{confidence}"\n')
    assert codes(run) == expected
    assert codes(run, "--confidence=possible") == ALL


def test_the_environment_does(run: Run, code: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHMEMLINT_CONFIDENCE", "certain")
    assert codes(run) == ALL[:1]


def test_another_word_is_an_error(run: Run, code: Path) -> None:
    outcome = run("--confidence=sure")
    assert outcome.code == 2
    assert "'certain', 'likely', 'possible'" in outcome.err
    outcome = run("--config", "confidence = 'sure'")
    assert outcome.code == 2
    assert "`confidence`: expected one of" in outcome.err


def test_what_is_not_reported_does_not_fail_a_run(run: Run, code: Path) -> None:
    code.write_text("import torch\nLEAK101_MODE\n")
    assert run().code == 0
    assert run("--confidence=possible").code == 1


def test_what_is_not_reported_is_not_fixed(run: Run, code: Path) -> None:
    text = "import torch\nLEAK101_GIVEN\nLEAK101_MODE\n"
    code.write_text(text)
    run("--fix")
    assert code.read_text() == text
    run("--fix", "--unsafe-fixes")
    assert code.read_text() == "import torch\nmended\nLEAK101_MODE\n"
    run("--fix", "--unsafe-fixes", "--confidence=possible")
    assert code.read_text() == "import torch\nmended\nmended\n"


def test_what_is_not_reported_is_not_silenced(run: Run, code: Path) -> None:
    run("--add-ignores")
    assert "ignore[TML102]" in code.read_text()
    assert "ignore[TML401]" not in code.read_text()


def test_a_comment_that_silences_what_is_not_reported_is_in_use(run: Run, code: Path) -> None:
    code.write_text("import torch\nLEAK101_MODE  # torchmemlint: ignore[TML101]\n")
    assert run() == (0, "All checks passed!\n", "")
    assert run("--confidence=possible") == (0, "All checks passed!\n", "")


@pytest.mark.parametrize(
    ("confidence", "line"),
    [
        ("certain", "2 less certain findings are not shown (--confidence possible shows them)."),
        ("likely", "1 less certain finding is not shown (--confidence possible shows it)."),
        ("possible", None),
    ],
)
def test_the_summary_counts_what_is_not_shown(run: Run, code: Path, confidence: str, line: str | None) -> None:
    for arguments in ((), ("--statistics",), ("--no-cache",), ("--output-format=grouped",)):
        out = run("--confidence", confidence, *arguments).out
        assert [one for one in out.splitlines() if "not shown" in one] == ([line] if line else [])
    assert "not shown" not in run("-q").out
    assert "not shown" not in run("--output-format=github").out


def test_it_is_counted_where_all_checks_pass_and_after_fixes(run: Run, code: Path) -> None:
    code.write_text("import torch\nLEAK101_MODE\n")
    line = "1 less certain finding is not shown (--confidence possible shows it).\n"
    assert run() == (0, f"All checks passed!\n{line}", "")
    code.write_text("import torch\nLEAK101\nLEAK101_MODE\n")
    assert run("--fix").out.endswith(f"Nothing is left.\n{line}")


def test_a_comment_takes_it_from_the_count(run: Run, code: Path) -> None:
    code.write_text(CODE.replace("LEAK401_MODE", "LEAK401_MODE  # torchmemlint: ignore[TML401]"))
    assert "not shown" not in run().out


def test_the_statistics_count_what_is_reported(run: Run, code: Path) -> None:
    rows = json.loads(run("--statistics", "--output-format=json").out)
    assert {row["code"]: row["count"] for row in rows} == {"TML101": 1, "TML102": 1}


def test_a_baseline_takes_in_what_is_reported(run: Run, code: Path) -> None:
    assert run("baseline", "create").out.startswith("Wrote 2 findings")
    assert codes(run) == []
    assert codes(run, "--confidence=possible") == ["TML401"]
    assert run("baseline", "create", "--force", "--confidence=possible").out.startswith("Wrote 3 findings")
    assert codes(run, "--confidence=possible") == []
    assert run("baseline", "update", "--confidence=certain").out.startswith("Dropped 2 findings")


def test_a_baseline_knows_a_finding_whatever_its_confidence() -> None:
    span = Span(Position(1, 1), Position(1, 2))
    finding = Finding("TML101", "graph-accumulation", Severity.ERROR, "a leak", Path("/p/a.py"), span, span)
    sure, doubted = (replace(finding, fingerprint="1:1", doubts=doubts) for doubts in ((), (Doubt.MODE,)))
    baseline = Baseline(Path("/p/torchmemlint-baseline.json"))
    for before, after in ((sure, doubted), (doubted, sure)):
        known = replace(baseline, entries=(baseline.entry(before, ""),))
        assert [one for one, _ in sift([after], known, lambda one: "", lends=bool).known] == [after]


def test_beside_a_baseline_nothing_is_counted(run: Run, code: Path) -> None:
    run("baseline", "create")
    assert "not shown" not in run().out  # perhaps it is in the baseline


def test_projects_of_a_list_have_their_own(run: Run, project: Path) -> None:
    for name, confidence in (("one", "certain"), ("two", "possible")):
        (project / name).mkdir()
        (project / name / "a.py").write_text(CODE)
        (project / name / "torchmemlint.toml").write_text(f'confidence = "{confidence}"\n')
    (project / "list.txt").write_text("one\ntwo\n")
    outcome = run("--projects-from=list.txt", "--output-format=concise")
    assert [line.split(":")[0] for line in outcome.out.splitlines() if ": TML" in line] == ["one/a.py"] + 3 * [
        "two/a.py"
    ]
    assert "2 less certain findings are not shown" in outcome.out
    assert codes(run, "--projects-from=list.txt", "--confidence=likely") == 2 * ALL[:2]


@pytest.mark.parametrize(("confidence", "expected"), EACH)
def test_a_census_counts_what_is_reported(run: Run, code: Path, confidence: str, expected: list[str]) -> None:
    (code.parent / "list.txt").write_text(".\n")
    arguments = ("--projects-from=list.txt", "--output-format=json", "--confidence", confidence)
    found = json.loads(run("census", *arguments).out)["findings"]
    assert sorted(one["code"] for one in found) == expected
    assert sorted(one["confidence"] for one in found) == ["certain", "likely", "possible"][: len(expected)]


def test_a_census_of_reports_knows_it(run: Run, code: Path) -> None:
    listed = json.loads(run("--select=TML101", "--output-format=json").out)
    document = json.loads(run("--select=TML101", "--output-format=json-report").out)
    for confidence, told, (found, *_) in (("likely", listed, listed), ("certain", document, document["findings"])):
        found["confidence"] = confidence
        (code.parent / f"{confidence}.json").write_text(json.dumps(told))
    found = json.loads(run("census", "likely.json", "certain.json", "--output-format=json").out)["findings"]
    assert sorted(one["confidence"] for one in found) == ["certain", "likely"]
