"""Figures of findings: their words, and the file that keeps them."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from torchmemlint.measured import (
    FORMAT,
    Measured,
    Measurements,
    MeasurementsError,
    Verdict,
    read_measurements,
)

FIGURES = Measured(
    Verdict.CONFIRMED, "simulated", "A100 40GB", "2.13.0+cpu", "2026-11-21", "train.py --small", 592896.0, 7114752, 0
)
HOST = replace(FIGURES, backend="cpu", card="", reserved=None)
NOTHING = replace(FIGURES, verdict=Verdict.NO_EFFECT, per_step=0, peak=0)


def validate(contents: Any) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    referencing = pytest.importorskip("referencing")
    schemas = [
        json.loads((files("torchmemlint") / name).read_text(encoding="utf-8"))
        for name in ("report/schema.json", "measured_schema.json")
    ]
    resources = [(schema["$id"], referencing.Resource.from_contents(schema)) for schema in schemas]
    registry = referencing.Registry().with_resources(resources)
    jsonschema.Draft202012Validator.check_schema(schemas[1])
    jsonschema.Draft202012Validator(schemas[1], registry=registry).validate(contents)


@pytest.mark.parametrize(
    ("measured", "sentence"),
    [
        (FIGURES, "+579.0 KiB per step (simulated A100 40GB, 2026-11-21)"),
        (replace(FIGURES, backend="cuda", card="NVIDIA L4"), "+579.0 KiB per step (cuda NVIDIA L4, 2026-11-21)"),
        (HOST, "+579.0 KiB per step (cpu, 2026-11-21)"),
        (replace(HOST, per_step=0), "+6.8 MiB at the peak (cpu, 2026-11-21)"),
        (replace(FIGURES, per_step=0, peak=0, reserved=2 << 20), "+2.0 MiB reserved (simulated A100 40GB, 2026-11-21)"),
        (
            replace(HOST, per_step=0, peak=0, host_per_step=9e3),
            "+8.8 KiB per step on the host's heap (cpu, 2026-11-21)",
        ),
        (NOTHING, "no effect here (`train.py --small`, simulated A100 40GB, 2026-11-21)"),
        (
            replace(HOST, verdict=Verdict.CHANGES_RESULTS),
            "+579.0 KiB per step; the fix changes results (cpu, 2026-11-21)",
        ),
        (
            replace(HOST, verdict=Verdict.CHANGES_RESULTS, per_step=0, peak=0),
            "no effect here; the fix changes results (`train.py --small`, cpu, 2026-11-21)",
        ),
        (
            replace(HOST, verdict=Verdict.FIX_FAILS, per_step=None, peak=None),
            "the fix fails (`train.py --small`, cpu, 2026-11-21)",
        ),
        (
            replace(HOST, verdict=Verdict.NOT_TRIED, per_step=None, peak=None, line_per_step=2048.0),
            "+2.0 KiB per step kept (cpu, 2026-11-21)",
        ),
        (
            replace(HOST, verdict=Verdict.NOT_TRIED, per_step=None, peak=None, loop_per_step=2048.0),
            "+2.0 KiB per step kept in the loop around it (cpu, 2026-11-21)",
        ),
    ],
)
def test_sentences(measured: Measured, sentence: str) -> None:
    assert measured.sentence == sentence


def test_even_in_brief_a_simulated_figure_is_called_one() -> None:
    assert FIGURES.brief == "+579.0 KiB per step, simulated"
    assert NOTHING.brief == "no effect here, simulated"
    assert HOST.brief == "+579.0 KiB per step"


def test_what_is_written_is_read_and_keeps_to_the_schema(tmp_path: Path) -> None:
    path = tmp_path / "measured.json"
    unicode = replace(HOST, program="modèle.py --größe 3")
    kept = Measurements(tmp_path).with_figures("f2", "TML201", tmp_path / "src" / "b.py", unicode)
    kept = kept.with_figures("f1", "TML101", tmp_path / "src" / "a.py", FIGURES)
    kept = kept.with_figures("f3", "TML101", tmp_path.parent / "other" / "a.py", NOTHING)
    path.write_text(kept.to_text(), encoding="utf-8")
    contents = json.loads(kept.to_text())
    validate(contents)
    assert [line["file"] for line in contents["measurements"]] == ["../other/a.py", "src/a.py", "src/b.py"]
    again = read_measurements(path)
    assert again is not None
    assert again.of("f1", tmp_path / "src" / "a.py") == FIGURES
    assert again.of("f2", tmp_path / "src" / "b.py") == unicode
    assert again.of("f3", tmp_path.parent / "other" / "a.py") == NOTHING
    assert again.of("f4", tmp_path / "src" / "a.py") is None
    assert again.to_text() == kept.to_text()


def test_no_file_is_no_measurements(tmp_path: Path) -> None:
    assert read_measurements(tmp_path / "none.json") is None
    assert read_measurements(tmp_path / "none" / "none.json") is None


def test_new_figures_take_the_place_of_the_old_ones(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    kept = Measurements(tmp_path).with_figures("f", "TML101", path, FIGURES).with_figures("g", "TML101", path, HOST)
    kept = kept.with_figures("f", "TML101", path, NOTHING)
    assert kept.of("f", path) == NOTHING
    assert kept.of("g", path) == HOST
    assert len(json.loads(kept.to_text())["measurements"]) == 2


def test_files_of_one_name_have_figures_of_their_own(tmp_path: Path) -> None:
    first, second, third = (tmp_path / folder / "train.py" for folder in ("vision", "text", "audio"))
    for path in (first, second, third):
        path.parent.mkdir()
        path.touch()
    kept = Measurements(tmp_path).with_figures("f", "TML101", first, FIGURES).with_figures("f", "TML101", second, HOST)
    assert (kept.of("f", first), kept.of("f", second), kept.of("f", third)) == (FIGURES, HOST, None)


def test_figures_go_with_a_file_that_moves(tmp_path: Path) -> None:
    old, new, other = (tmp_path / folder / "train.py" for folder in ("scripts", "src", "docs"))
    for path in (old, new, other):
        path.parent.mkdir()
    old.touch()
    kept = Measurements(tmp_path).with_figures("f", "TML101", old, FIGURES)
    assert kept.of("f", new) is None  # a copy is not the file that was measured
    old.rename(new)
    assert kept.of("f", new) == FIGURES
    kept = kept.with_figures("f", "TML101", new, NOTHING)
    assert [line["file"] for line in json.loads(kept.to_text())["measurements"]] == ["src/train.py"]
    two = Measurements(tmp_path).with_figures("f", "TML101", old, FIGURES)
    two = Measurements(tmp_path, [*two._lines["f"], replace(two._lines["f"][0], file="gone/train.py")])
    assert two.of("f", new) is None  # it may be either


def test_the_folder_may_be_reached_by_a_link(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    kept = Measurements(tmp_path / "link").with_figures("f", "TML101", real / "a.py", FIGURES)
    assert kept.of("f", tmp_path / "link" / "a.py") == FIGURES


def spoilt(**changes: Any) -> str:
    line = {"fingerprint": "f", "code": "TML101", "file": "a.py", "measured": {**FIGURES.to_json(), **changes}}
    return json.dumps({"format": FORMAT, "version": 1, "measurements": [line]})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not valid JSON"),
        ("<<<<<<< HEAD\n{}", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ("[]", "not a file of measurements"),
        ('{"name": "a-package"}', "not a file of measurements"),
        (json.dumps({"format": FORMAT, "version": 2, "measurements": []}), "version 2; this release reads version 1"),
        (json.dumps({"format": FORMAT, "version": 1}), "lacks `measurements`"),
        (json.dumps({"format": FORMAT, "version": 1, "measurements": {}}), "`measurements` of a measurement is {}"),
        (json.dumps({"format": FORMAT, "version": 1, "measurements": [1]}), "not an object"),
        (spoilt(surprise=1), "unknown key `surprise`"),
        (spoilt(per_step="many"), "`per_step` of a measurement is 'many'"),
        (spoilt(per_step=True), "`per_step` is True"),
        (spoilt(peak=float("nan")), "`peak` is nan"),
        (spoilt(date="yesterday"), "yesterday"),
        (spoilt(verdict="guilty"), "guilty"),
        (spoilt(card=None), "`card` of a measurement is None"),
    ],
)
def test_what_is_not_ours_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "measured.json"
    path.write_text(text)
    with pytest.raises(MeasurementsError) as caught:
        read_measurements(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(MeasurementsError, match=r"cannot be read: Is a directory|Permission"):
        read_measurements(tmp_path)
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(MeasurementsError, match="not UTF-8"):
        read_measurements(tmp_path / "binary.json")
