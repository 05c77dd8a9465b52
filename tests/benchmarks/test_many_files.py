from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "many_files.py"

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


def test_a_tree_of_small_files() -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--files", "300", "--every", "100", "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, again = json.loads(done.stdout)
    assert (first["files"], again["files"]) == (300, 300)
    assert first["cpu"] < 20
    assert again["cpu"] < first["cpu"] + 1
    assert max(first["peak"], again["peak"]) < 400e6
