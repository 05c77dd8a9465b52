"""Evidence that stands in another file than the finding: every output format says where."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from torchmemlint.cli.main import main
from torchmemlint.report.formats import FORMATS

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
    """Below the frame, with the source line of the other file."""
    row = place.rpartition(":")[2]
    return (
        f" ::: {place}\n" in out and f"{row} |         self.values.append(value)\n" in out.split(f" ::: {place}\n")[1]
    )


def of_concise(out: str, place: str) -> bool:
    """At the end of the finding's own line, which begins as ever."""
    (line,) = (line for line in out.splitlines() if "TML102" in line)
    return line.startswith("train.py:12:9: TML102 [-] ") and line.endswith(f"{place})") and "(see tools/" in line


def of_json(out: str, place: str) -> bool:
    """As a piece of evidence with the other file's absolute name."""
    (finding,) = json.loads(out)
    name, _, row = place.partition(":")
    return any(
        Path(evidence["filename"]) == Path.cwd() / name and evidence["location"]["row"] == int(row)
        for evidence in finding["evidence"]
    )


def of_json_lines(out: str, place: str) -> bool:
    """As in JSON."""
    return of_json(f"[{out}]", place)


def of_json_report(out: str, place: str) -> bool:
    """As in JSON."""
    return of_json(json.dumps(json.loads(out)["findings"]), place)


def of_line(out: str, place: str) -> bool:
    """After the message, in brackets."""
    (line,) = (line for line in out.splitlines() if "`meter.update(loss)` keeps" in line)
    return f"(see {place})" in line


def of_lines(out: str, place: str) -> bool:
    """A line for each piece of evidence."""
    return f"{place}: keeps what it is given" in out.replace("%0A", "\n")


def of_sarif(out: str, place: str) -> bool:
    """As a related location, and as a step of the code flow."""
    (result,) = json.loads(out)["runs"][0]["results"]
    steps = [one["location"] for one in result["codeFlows"][0]["threadFlows"][0]["locations"]]
    return all(
        place
        in [
            f"{one['physicalLocation']['artifactLocation']['uri']}:{one['physicalLocation']['region']['startLine']}"
            for one in places
        ]
        for places in (steps, result["relatedLocations"])
    )


def of_rdjson(out: str, place: str) -> bool:
    """As a related location."""
    (diagnostic,) = json.loads(out)["diagnostics"]
    places = [one["location"] for one in diagnostic["related_locations"]]
    return place in [f"{one['path']}:{one['range']['start']['line']}" for one in places]


def of_page(out: str, place: str) -> bool:
    """In the table of evidence."""
    return place in out


SHOWS = {
    "full": of_full,
    "concise": of_concise,
    "grouped": of_line,
    "json": of_json,
    "json-lines": of_json_lines,
    "json-report": of_json_report,
    "github": of_lines,
    "azure": of_lines,
    "gitlab": of_line,
    "junit": of_lines,
    "pylint": of_line,
    "sarif": of_sarif,
    "rdjson": of_rdjson,
    "markdown": of_line,
    "html": of_page,
}


def test_every_format_is_looked_at() -> None:
    assert set(SHOWS) == set(FORMATS)


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


def test_a_project_elsewhere_is_seen_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    project, here = tmp_path / "project", tmp_path / "here"
    here.mkdir()
    (project / "tools").mkdir(parents=True)
    (project / "setup.py").touch()
    (project / "tools/meter.py").write_text(METER.format(value="value"))
    (project / "scripts").mkdir()
    (project / "scripts/train.py").write_text(TRAIN)
    monkeypatch.chdir(here)
    capfd.readouterr()
    main(("check", "--isolated", "--no-cache", "--output-format", "concise", "../project/scripts"))
    (line,) = (line for line in capfd.readouterr().out.splitlines() if "TML102" in line)
    assert line.endswith("tools/meter.py:6)")
