"""`torchmemlint baseline`, and what `check` leaves out because of it. (The rules are stand-ins: see `fakes`.)"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from torchmemlint.measured import Measured, Measurements, Verdict

from .conftest import Run

NAME = "torchmemlint-baseline.json"
CODE = "import torch\nx = LEAK101\ny = LEAK102\n"
FIGURES = Measured(
    Verdict.CONFIRMED, "simulated", "A100 40GB", "2.13.0", "2026-11-21", "train.py", 592896.0, 7114752, 0
)


@pytest.fixture
def known(project: Path, run: Run) -> Path:
    """A project whose two findings are in its baseline."""
    (project / "train.py").write_text(CODE)
    assert run("baseline", "create") == (0, f"Wrote 2 findings in 1 file to {NAME}.\n", "")
    return project / NAME


def codes(run: Run, *arguments: str) -> list[str]:
    return [finding["code"] for finding in json.loads(run("--output-format=json", *arguments).out)]


def entries(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text())["findings"]
    return found


def test_known_findings_are_left_out(known: Path, run: Run) -> None:
    assert run() == (0, f"No new problems.\nLeft out 2 problems in {NAME}.\n", "")
    assert run("-q") == (0, "", "")
    assert run("--statistics", "-q") == (0, "", "")
    assert codes(run) == []
    assert codes(run, "--no-baseline") == ["TML101", "TML102"]
    (known.parent / "train.py").write_text(CODE + "z = LEAK101\n")
    new = run("--output-format=concise")
    assert new.out.splitlines() == [
        "train.py:4:5: TML101 [*] a leak",
        "Found 1 problem (1 error) in 1 file.",
        "[*] 1 fixable with --fix.",
        f"Left out 2 problems in {NAME}.",
    ]
    assert new.code == 1


def test_the_file_is_validated_by_its_schema_and_is_the_same_each_time(known: Path, run: Run) -> None:
    from importlib.resources import files

    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((files("torchmemlint") / "baseline_schema.json").read_text(encoding="utf-8"))
    validator = jsonschema.Draft202012Validator(schema)
    validator.check_schema(schema)
    text = known.read_text()
    validator.validate(json.loads(text))
    assert len(text.splitlines()) == 4 + 2 + 2  # a line for each finding
    assert run("baseline", "create", "--force").code == 0
    assert run("baseline", "update") == (0, "Dropped 0 findings that no longer occur; 2 are left.\n", "")
    assert known.read_text() == text
    (known.parent / "train.py").unlink()
    run("baseline", "update")
    validator.validate(json.loads(known.read_text()))
    assert entries(known) == []


def test_equal_findings_are_counted(known: Path, run: Run) -> None:
    source = known.parent / "train.py"
    source.write_text("import torch\ndef f():\n    x = LEAK101\ndef g():\n    x = LEAK101\n")
    run("baseline", "create", "--force")
    source.write_text("import torch\ndef h():\n    x = LEAK101\ndef f():\n    x = LEAK101\ndef g():\n    x = LEAK101\n")
    (new,) = json.loads(run("--output-format=json").out)
    assert new["location"]["row"] == 3  # not one of those in functions that had it before


def test_moved_and_renamed_files(known: Path, run: Run) -> None:
    folder = known.parent / "deep" / "er"
    folder.mkdir(parents=True)
    (known.parent / "train.py").rename(folder / "fit.py")
    assert codes(run) == []
    assert codes(run, "deep") == []
    run("baseline", "update")
    assert {entry["path"] for entry in entries(known)} == {"deep/er/fit.py"}
    (known.parent / "copy.py").write_text(CODE)
    assert codes(run) == ["TML101", "TML102"]


def test_an_entry_is_not_lent_where_its_own_finding_was_not_looked_at(known: Path, run: Run) -> None:
    # As pre-commit calls it: with the changed files only.
    (known.parent / "new.py").write_text(CODE)
    assert codes(run, "new.py") == ["TML101", "TML102"]
    (known.parent / "train.py").write_text("import torch\n")
    assert codes(run, "new.py", "train.py") == []  # the code was moved


def test_an_edit_around_the_expression(known: Path, run: Run) -> None:
    source = known.parent / "train.py"
    source.write_text("import torch\nx = f(LEAK101)\nother = LEAK102\n")
    assert codes(run) == []
    source.write_text("import torch\ndef f():\n    x = f(LEAK101)\nother = LEAK102\n")
    assert codes(run) == ["TML101"]


def test_what_no_longer_occurs_is_told_and_dropped(known: Path, run: Run) -> None:
    source = known.parent / "train.py"
    source.write_text("import torch\ny = LEAK102\n")
    told = run().out.splitlines()
    assert told[1:] == [
        f"Left out 1 problem in {NAME}.",
        "1 entry there no longer occurs: `torchmemlint baseline update` drops it.",
    ]
    assert "no longer" not in run("--ignore=TML101").out  # it was not looked for
    (known.parent / "other.py").write_text("import torch\n")
    assert "no longer" not in run("other.py").out
    source.write_text("import torch\ny = LEAK102\nz = LEAK201\n")
    done = run("baseline", "update")
    assert done.out.splitlines() == [
        "Dropped 1 finding that no longer occurs; 1 is left.",
        "1 new finding not taken in: `torchmemlint check` shows what is new.",
    ]
    assert [entry["rule"] for entry in entries(known)] == ["TML102"]


def test_update_of_a_part_leaves_the_rest(known: Path, run: Run) -> None:
    (known.parent / "other.py").write_text(CODE)
    run("baseline", "create", "--force")
    (known.parent / "train.py").write_text("import torch\n")
    (known.parent / "other.py").write_text("import torch\n")
    run("baseline", "update", "other.py")
    assert {entry["path"] for entry in entries(known)} == {"train.py"}
    run("baseline", "update", "--select=TML102")
    assert {entry["rule"] for entry in entries(known)} == {"TML101"}


def test_suppressed_findings_are_not_in_it(project: Path, run: Run) -> None:
    (project / "train.py").write_text("import torch\nx = LEAK101  # torchmemlint: ignore[TML101]\ny = LEAK101\n")
    run("baseline", "create")
    assert len(entries(project / NAME)) == 1
    assert run().code == 0


def test_create_does_not_write_over_a_baseline(known: Path, run: Run) -> None:
    text = known.read_text()
    (known.parent / "train.py").write_text("import torch\n")
    refused = run("baseline", "create")
    assert (refused.code, refused.out) == (2, "")
    assert "there is a baseline already" in refused.err
    assert known.read_text() == text


@pytest.mark.parametrize(
    ("contents", "said"),
    [
        (b"{", "not valid JSON"),
        (b"", "not valid JSON"),
        (b"[]", "not a baseline"),
        (b"\xff", "not UTF-8"),
        (
            b'{"format": "torchmemlint baseline", "version": 2, "findings": []}',
            "version 2; this release reads version 1",
        ),
        (b'{"format": "torchmemlint baseline", "version": 1}', "`findings` is missing"),
        (b'{"format": "torchmemlint baseline", "version": 1, "findings": {}}', "`findings` is not a list"),
        (b'{"format": "torchmemlint baseline", "version": 1, "findings": [], "more": 1}', "`more` is unknown"),
        (b'{"format": "torchmemlint baseline", "version": 1, "findings": [1]}', "finding 1 is not an object"),
        (b'{"format": "torchmemlint baseline", "version": 1, "findings": [{"path": "a"}]}', "`rule` of finding 1"),
        (b'<<<<<<< HEAD\n{"format": ""}\n=======\n>>>>>>> other\n', "unresolved merge conflicts"),
    ],
)
@pytest.mark.parametrize("command", [(), ("baseline", "update"), ("baseline", "show"), ("-",)])
def test_a_broken_baseline_is_an_error(
    known: Path, run: Run, contents: bytes, said: str, command: tuple[str, ...]
) -> None:
    known.write_bytes(contents)
    done = run(*command, stdin=CODE.encode())
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert NAME in done.err
    assert known.read_bytes() == contents
    assert run("--no-baseline").code == 1


def test_a_baseline_that_is_asked_for_must_be_there(project: Path, run: Run) -> None:
    (project / "train.py").write_text(CODE)
    missing = run("--baseline=nowhere.json")
    assert (missing.code, missing.out) == (2, "")
    assert "nowhere.json: no such baseline" in missing.err
    assert run("baseline", "show").code == run("baseline", "update").code == 2
    both = run("--baseline=a.json", "--no-baseline")
    assert (both.code, "contradict each other" in both.err) == (2, True)


def test_another_file(project: Path, run: Run) -> None:
    (project / "train.py").write_text(CODE)
    (project / "ci").mkdir()
    assert run("baseline", "create", "--baseline=ci/old.json").code == 0
    assert {entry["path"] for entry in entries(project / "ci/old.json")} == {"../train.py"}
    assert codes(run) == ["TML101", "TML102"]
    assert codes(run, "--baseline=ci/old.json") == []
    (project / ".torchmemlint.toml").write_text('baseline = "ci/old.json"\n')
    assert codes(run) == []
    assert f'baseline = "{project / "ci" / "old.json"}"' in run("--show-settings").out
    (project / "ci/old.json").unlink()
    assert run().code == 2


@pytest.fixture
def parts(project: Path) -> Path:
    """A project with a part that has a configuration of its own."""
    (project / "part").mkdir()
    (project / "part" / "torchmemlint.toml").write_text("")
    (project / "part" / "a.py").write_text(CODE)
    (project / "train.py").write_text(CODE)
    return project


def test_each_configuration_has_its_own(parts: Path, run: Run) -> None:
    created = run("baseline", "create")
    assert created.out == (f"Wrote 2 findings in 1 file to {NAME}.\nWrote 2 findings in 1 file to part/{NAME}.\n")
    assert created.err == ""
    assert codes(run) == []
    assert f"Left out 4 problems in 2 files {NAME}." in run().out
    assert [entry["path"] for entry in entries(parts / "part" / NAME)] == ["a.py", "a.py"]
    (parts / "part" / "a.py").write_text("import torch\nx = LEAK101\n")
    assert run("baseline", "update").out == (
        f"Dropped 1 finding that no longer occurs; 1 is left in part/{NAME}.\n"
        f"Dropped 0 findings that no longer occur; 2 are left in {NAME}.\n"
    )
    (parts / "part" / "a.py").write_text("import torch\n")
    run("baseline", "create", "--force")
    assert entries(parts / "part" / NAME) == []


def test_one_part_alone(parts: Path, run: Run) -> None:
    assert run("baseline", "create", "part").out == f"Wrote 2 findings in 1 file to part/{NAME}.\n"
    assert not (parts / NAME).exists()
    assert codes(run) == ["TML101", "TML102"]  # those beside it
    refused = run("baseline", "create")
    assert refused.code == 2
    assert f"part/{NAME}: there is a baseline already" in " ".join(refused.err.split())
    assert run("baseline", "update", "part").out == "Dropped 0 findings that no longer occur; 2 are left.\n"


def test_all_in_one_file(parts: Path, run: Run) -> None:
    assert run("baseline", "create", "--baseline=all.json").out == "Wrote 4 findings in 2 files to all.json.\n"
    assert run("--baseline=all.json").code == 0
    (parts / "part" / "a.py").write_text("import torch\n")
    updated = run("baseline", "update", "--baseline=all.json")
    assert updated.out == "Dropped 2 findings that no longer occur; 2 are left.\n"


def test_one_that_is_inherited(parts: Path, run: Run) -> None:
    (parts / ".torchmemlint.toml").write_text('baseline = "known.json"\n')
    (parts / "part" / "torchmemlint.toml").write_text('extend = "../.torchmemlint.toml"\n')
    assert run("baseline", "create").out == "Wrote 4 findings in 2 files to known.json.\n"
    assert codes(run) == []


def test_standard_input(known: Path, run: Run) -> None:
    assert run("-", "--stdin-filename=train.py", stdin=CODE.encode()).code == 0
    found = run(
        "-", "--stdin-filename=train.py", "--output-format=concise", "-q", stdin=(CODE + "z = LEAK101\n").encode()
    )
    assert found.out == "train.py:4:5: TML101 [*] a leak\n"


def test_only_what_is_reported_is_fixed(known: Path, run: Run) -> None:
    source = known.parent / "train.py"
    assert run("--fix").code == 0
    assert source.read_text() == CODE
    source.write_text("import torch\nz = LEAK101\nx = LEAK101\ny = LEAK102\nx = LEAK101\n")
    assert "Would fix 2 problems." in run("--diff").err
    fixed = run("--fix", "--output-format=concise")
    assert source.read_text() == "import torch\nz = mended\nx = LEAK101\ny = LEAK102\nx = mended\n"
    assert fixed.out.splitlines()[-1] == f"Left out 2 problems in {NAME}."
    assert fixed.code == 0
    again = run("-", "--fix", "--stdin-filename=train.py", stdin=(CODE + "z = LEAK101\n").encode())
    assert again.out == CODE + "z = mended\n"
    run("--fix", "--no-baseline")
    assert "LEAK101" not in source.read_text()


def test_an_internal_error_writes_no_baseline(project: Path, run: Run) -> None:
    (project / "a.py").write_text("import torch\nCRASH\n")
    done = run("baseline", "create")
    assert done.code == 2
    assert f"{NAME} was not written" in done.err
    assert not (project / NAME).exists()


def test_unreadable_files_can_be_known(project: Path, run: Run) -> None:
    (project / "old.py").write_text("import torch\nprint 'a'\n")
    assert run().code == 1
    run("baseline", "create")
    assert run().code == 0


def test_measured_bytes_are_carried_and_shown_the_most_costly_first(known: Path, run: Run) -> None:
    first, second = json.loads(run("--output-format=json", "--no-baseline").out)
    kept = Measurements(known.parent).with_figures(second["fingerprint"], "TML102", known.parent / "train.py", FIGURES)
    figures = known.parent / "torchmemlint-measured.json"
    figures.write_text(kept.to_text())
    shown = run("baseline", "show").out.splitlines()
    assert shown == [
        "train.py: TML102 a leak (measured: +579.0 KiB per step (simulated A100 40GB, 2026-11-21))",
        "train.py: TML101 a leak",
        "2 findings in 1 file.",
    ]
    run("baseline", "update")
    figures.unlink()
    assert entries(known)[1]["measured"]["per_step"] == 592896.0
    assert run("baseline", "show").out.splitlines() == shown
    run("baseline", "update")  # what was measured once is not lost
    assert run("baseline", "show").out.splitlines() == shown
    listed = json.loads(run("baseline", "show", "--output-format=json").out)
    assert [entry["rule"] for entry in listed] == ["TML102", "TML101"]
    assert run("baseline", "show", "--statistics").out.splitlines() == [
        "1  TML101  graph-accumulation",
        "1  TML102  graph-collection",
    ]
    assert first["fingerprint"] in known.read_text()
