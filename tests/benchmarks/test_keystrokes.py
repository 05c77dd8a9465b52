from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pygls")

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks for the clock of a process")


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    from training_script import training_script

    return training_script


@pytest.mark.parametrize("rows", [1, 600, 1000])
def test_the_script_has_about_as_many_rows_as_asked_for_and_parses(script, rows: int) -> None:
    text = script(rows)
    names = [node.name for node in ast.parse(text).body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    assert len(names) == len(set(names))
    assert rows <= text.count("\n") <= max(rows, 460) + 40


@pytest.mark.slow
def test_every_keystroke_is_answered() -> None:
    words = [
        sys.executable,
        str(FOLDER / "keystrokes.py"),
        "--rows",
        "1",
        "--workspace",
        "3",
        "--pause",
        "0.02",
        "--lines",
        "2",
    ]
    done = subprocess.run([*words, "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert len(result["strokes"]) == result["all"]["keystrokes"] > 60
    assert 0 < result["readable"]["keystrokes"] < result["all"]["keystrokes"]
    for stroke in result["strokes"]:
        assert 0 < stroke["cpu"] < 60
        assert stroke["seconds"] > 0
