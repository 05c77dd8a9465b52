"""What `check` shows of a file that `verify --record` wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from torchmemlint.engine import figures
from torchmemlint.measured import Measured, Measurements, Verdict

from .conftest import Run

CODE = "import torch\nx = LEAK101\n"
FIGURES = Measured(
    Verdict.CONFIRMED, "simulated", "A100 40GB", "2.13.0", "2026-11-21", "train.py", 592896.0, 7114752, 0
)


@pytest.fixture
def measured(project: Path, run: Run) -> Path:
    """A project whose only finding was measured; the file of its measurements."""
    (project / "train.py").write_text(CODE)
    (found,) = json.loads(run("--output-format=json").out)
    assert "measured" not in found
    kept = Measurements(project).with_figures(found["fingerprint"], "TML101", project / "train.py", FIGURES)
    path = project / "torchmemlint-measured.json"
    path.write_text(kept.to_text())
    return path


def test_the_figure_stands_beside_the_finding(measured: Path, run: Run) -> None:
    full = run().out.splitlines()
    place = full.index("  = measured: +579.0 KiB per step (simulated A100 40GB, 2026-11-21)")
    assert full[place + 2] == "  = fix (safe): Mend it"
    concise = run("--output-format=concise", "--quiet").out
    assert concise == "train.py:2:5: TML101 [*] a leak (measured: +579.0 KiB per step, simulated)\n"
    (found,) = json.loads(run("--output-format=json").out)
    assert found["measured"] == FIGURES.to_json()


def test_it_stays_where_lines_move_and_goes_where_the_line_changes(measured: Path, run: Run) -> None:
    source = measured.parent / "train.py"
    source.write_text("import torch\n\n\ndef f():\n    x   =  LEAK101\n")
    assert "(measured: " in run("--output-format=concise").out
    source.write_text("import torch\ny = LEAK101\n")
    changed = run("--output-format=concise")
    assert "(measured: " not in changed.out
    assert (changed.code, changed.err) == (1, "")  # what is out of date is kept for when it comes back
    assert json.loads(measured.read_text())["measurements"]


def test_it_is_shown_of_standard_input_and_in_other_folders(measured: Path, run: Run) -> None:
    assert "(measured: " in run("-", "--stdin-filename=train.py", "--output-format=concise", stdin=CODE.encode()).out
    other = measured.parent / "other"
    other.mkdir()
    (other / "train.py").write_text(CODE)
    first, second = run("--output-format=concise", "--quiet").out.splitlines()
    assert "(measured: " not in first  # other/train.py was not measured
    assert "(measured: " in second


def test_another_place_can_be_set(measured: Path, run: Run) -> None:
    (measured.parent / "bench").mkdir()
    kept = json.loads(measured.read_text())
    kept["measurements"][0]["file"] = "../train.py"
    (measured.parent / "bench" / "kept.json").write_text(json.dumps(kept))
    measured.unlink()
    assert "(measured: " not in run("--output-format=concise").out
    (measured.parent / ".torchmemlint.toml").write_text('measurements = "bench/kept.json"\n')
    assert "(measured: " in run("--output-format=concise").out
    assert f'measurements = "{measured.parent / "bench" / "kept.json"}"' in run("--show-settings").out


def test_a_broken_file_is_told_once_and_findings_are_shown_without_it(measured: Path, run: Run) -> None:
    (measured.parent / "second.py").write_text(CODE)
    measured.write_text("<<<<<<< HEAD\n")
    outcome = run("--output-format=concise", "--quiet")
    assert outcome.out.splitlines() == ["second.py:2:5: TML101 [*] a leak", "train.py:2:5: TML101 [*] a leak"]
    assert outcome.err.startswith(f"warning: {measured}: not valid JSON: ")
    assert outcome.err.endswith("; findings are shown without their figures\n")
    assert outcome.err.count("\n") == 1
    assert outcome.code == 1
    assert measured.read_text() == "<<<<<<< HEAD\n"


def test_it_is_read_once_and_only_if_there_are_findings(
    measured: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(figures, "read_measurements", asked.append)
    (measured.parent / "second.py").write_text(CODE)
    run("--jobs=1")
    assert asked == [measured]
    for name in ("train.py", "second.py"):
        (measured.parent / name).write_text("import torch\n")
    run("--jobs=1")
    assert asked == [measured]
