"""`tools/on_gpu.py` without a GPU: an item is measured, kept, and not measured again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
SCRIPT = Path(__file__).parent.parent / "tools" / "on_gpu.py"


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """The script, as it is called."""
    return subprocess.run([sys.executable, str(SCRIPT), *words], capture_output=True, text=True, check=False)


def test_answers_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "on_gpu.json"
    words = ["--output", str(file), "--only", "autocast"]
    assert run("--dry", *words).returncode == 0
    kept = json.loads(file.read_text())
    assert kept["dry"] is True
    answer = kept["items"]["autocast"]["answer"]
    assert (answer["matmul bfloat16"], answer["matmul float16"]) == ("bfloat16", "float16")
    again = run("--dry", *words)
    assert (again.returncode, again.stdout) == (0, "")
    other = run(*words)
    assert other.returncode == 2
    assert "name another --output" in other.stderr
