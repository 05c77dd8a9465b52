"""Evidence that stands in another file than the finding: every output format says where."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from torchmemlint.cli.main import main
from torchmemlint.report import OUTPUT_FORMATS

METER = """class Meter:
    def __init__(self):
        self.values = []

    def update(self, value):
        self.values.append({value})
"""

TRAIN = """import torch
from tools.meter import Meter


def train(model, loader, optimizer):
    meter = Meter()
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        meter.update(loss)
"""

Report = Callable[[str], str]


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Report:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/meter.py").write_text(METER.format(value="value"))
    (tmp_path / "train.py").write_text(TRAIN)

    def run(output_format: str) -> str:
        capfd.readouterr()
        main(("check", "--isolated", "--no-cache", "--output-format", output_format, "train.py"))
        return capfd.readouterr().out

    return run


def of_full(out: str, place: str) -> bool:
    """In the chain of evidence, with the source line of the other file."""
    return any(f"= {place} │ self.values.append(value)" in line for line in out.splitlines())


def of_concise(out: str, place: str) -> bool:
    """At the end of the finding's own line, which begins as ever."""
    (line,) = (line for line in out.splitlines() if "TML102" in line)
    return line.startswith("train.py:12:22: TML102 [*] ") and line.endswith(f"{place})") and "(see tools/" in line


def of_json(out: str, place: str) -> bool:
    """As a piece of evidence with the other file's absolute name."""
    (finding,) = json.loads(out)
    name, _, row = place.partition(":")
    return any(
        Path(evidence["filename"]) == Path.cwd() / name and evidence["location"]["row"] == int(row)
        for evidence in finding["evidence"]
    )


SHOWS = {"full": of_full, "concise": of_concise, "json": of_json}


def test_every_format_is_looked_at() -> None:
    assert set(SHOWS) == set(OUTPUT_FORMATS)


@pytest.mark.parametrize("output_format", SHOWS)
def test_the_place_in_the_other_file_is_shown(output_format: str, report: Report) -> None:
    assert SHOWS[output_format](report(output_format), "tools/meter.py:6")


@pytest.mark.parametrize("output_format", SHOWS)
def test_nothing_is_shown_where_nothing_is_found(output_format: str, report: Report, tmp_path: Path) -> None:
    (tmp_path / "tools/meter.py").write_text(METER.format(value="value.item()"))
    out = report(output_format)
    assert "meter" not in out
    assert "TML" not in out


def test_evidence_in_the_same_file_needs_no_second_place(report: Report, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        METER.format(value="value").rstrip() + "\n\n\n" + TRAIN.replace("from tools.meter import Meter\n", "")
    )
    assert "TML102" in report("concise")
    assert "(see" not in report("concise")
