"""torchmemlint in real flake8, which has to report what we do."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LEAKY = """\
import torch
from torch import nn


def train(model: nn.Module, loader, optimizer, criterion):
    größe = 0.0
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        größe += loss
    with torch.no_grad:
        pass
    return größe
"""
ON = ("--enable-extensions", "TML")
SHOWN = re.compile(r"(?P<file>.+?):(?P<row>\d+):(?P<column>\d+): (?P<code>\w+) (?P<message>.*)")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With a configuration of flake8 that has our plugin, whether or not it is installed with entry points by now."""
    points = metadata.entry_points(group="flake8.extension")
    local = (
        ""
        if "TML" in points.names
        else "\n[flake8:local-plugins]\nextension =\n  TML = torchmemlint.flake8_plugin:Plugin\n"
    )
    (tmp_path / ".flake8").write_text(f"[flake8]\nmax-line-length = 120\n{local}")
    (tmp_path / "torchmemlint.toml").write_text("")
    (tmp_path / "a.py").write_text(LEAKY)
    return tmp_path


def flake8(folder: Path, *arguments: str, stdin: str | None = None) -> tuple[int, list[tuple[str, int, int, str]], str]:
    done = subprocess.run(
        [sys.executable, "-m", "flake8", *arguments],
        cwd=folder,
        input=stdin,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    found = [SHOWN.fullmatch(line) for line in done.stdout.splitlines()]
    shown = [(m["file"], int(m["row"]), int(m["column"]), m["code"]) for m in found if m is not None]
    return done.returncode, shown, done.stdout + done.stderr


def ours(folder: Path, *arguments: str) -> list[tuple[str, int, int, str]]:
    command = [
        sys.executable,
        "-P" if sys.version_info >= (3, 11) else "-s",
        "-m",
        "torchmemlint",
        "--output-format=json",
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*command, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    return [
        ("./" + Path(one["filename"]).name, one["location"]["row"], one["location"]["column"], one["code"])
        for one in json.loads(done.stdout)
    ]


def test_it_is_off_until_it_is_asked_for(folder: Path) -> None:
    (folder / "torchmemlint.toml").write_text("slect = []\n")  # which would be said
    assert flake8(folder) == (0, [], "")
    assert flake8(folder, "--extend-select", "TML") == (0, [], "")
    (folder / "torchmemlint.toml").write_text("")
    assert [code for *_, code in flake8(folder, *ON)[1]] == ["TML101", "TML202"]
    configuration = folder / ".flake8"
    configuration.write_text(configuration.read_text().replace("[flake8]\n", "[flake8]\nenable-extensions = TML\n"))
    assert [code for *_, code in flake8(folder)[1]] == ["TML101", "TML202"]


def test_it_reports_what_we_do(folder: Path) -> None:
    for name in ("TML101-graph-accumulation", "TML502-empty-cache-in-loop"):
        for path in (ROOT / "fixtures" / name).glob("bad_*.py"):
            (folder / path.name).write_bytes(path.read_bytes())
    (folder / "crlf.py").write_bytes(b"\xef\xbb\xbf" + LEAKY.replace("\n", "\r\n").encode())
    expected = sorted(ours(folder, "."))
    assert len(expected) > 10
    assert sorted(flake8(folder, *ON, "--select", "TML")[1]) == expected
    assert sorted(flake8(folder, *ON, "--select", "TML", "--jobs", "1")[1]) == expected


@pytest.mark.parametrize(
    ("arguments", "codes"),
    [
        (("--select", "TML1"), ["TML101"]),
        (("--select", "TML202"), ["TML202"]),
        (("--extend-ignore", "TML1"), ["TML202"]),
        ((), ["TML101", "TML202"]),
        (("--select", "E,F,W"), []),
        (("--per-file-ignores", "a.py:TML101"), ["TML202"]),
    ],
)
def test_flake8_chooses(folder: Path, arguments: tuple[str, ...], codes: list[str]) -> None:
    assert [code for *_, code in flake8(folder, *ON, *arguments)[1]] == codes


def test_our_configuration_counts(folder: Path) -> None:
    (folder / "torchmemlint.toml").write_text('ignore = ["TML202"]\nexclude = ["b.py"]\n')
    (folder / "b.py").write_text(LEAKY)
    assert [(file, code) for file, *_, code in flake8(folder, *ON)[1]] == [("./a.py", "TML101")]


def test_comments_silence(folder: Path) -> None:
    text = LEAKY.replace("+= loss", "+= loss  # noqa: TML101").replace(
        "no_grad:", "no_grad:  # torchmemlint: ignore[TML202]"
    )
    (folder / "a.py").write_text(text)
    assert flake8(folder, *ON)[1] == []
    assert [code for *_, code in flake8(folder, *ON, "--disable-noqa")[1]] == ["TML101"]
    (folder / "a.py").write_text("# flake8: noqa\n" + LEAKY)
    assert flake8(folder, *ON)[1] == []


def test_standard_input(folder: Path) -> None:
    (folder / "torchmemlint.toml").write_text('[per-file-ignores]\n"c.py" = ["TML202"]\n')
    assert [code for *_, code in flake8(folder, *ON, "-", stdin=LEAKY)[1]] == ["TML101", "TML202"]
    named = flake8(folder, *ON, "--stdin-display-name", "c.py", "-", stdin=LEAKY)[1]
    assert named == [("c.py", 11, 9, "TML101")]


def test_what_is_wrong_is_no_silence(folder: Path) -> None:
    (folder / "torchmemlint.toml").write_text("slect = []\n")
    code, found, said = flake8(folder, *ON)
    assert (code != 0, found) == (True, [])
    assert "unknown configuration key `slect`. Did you mean `select`?" in said


def test_files_without_torch(folder: Path) -> None:
    (folder / "a.py").write_text("x = 1\n")
    assert flake8(folder, *ON) == (0, [], "")
