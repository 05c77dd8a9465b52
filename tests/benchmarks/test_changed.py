from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "changed.py"

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(SCRIPT), *words], capture_output=True, text=True, check=False)


def test_a_made_up_project() -> None:
    done = run("--synthetic", "100", "--files", "3", "--repetitions", "1", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["files"] == 101
    assert 0.001 < result["baselines"]["import ast"] < result["baselines"]["ast.parse of all files"] + 5
    assert len(result["changed"]) == 3
    for one in result["changed"]:
        assert 0.01 < one["seconds"] < 60
        assert 0.01 < one["cpu"] < 60
        # Of a hundred files, a trainer needs its meter, its model, that one's base, and what the package exports.
        assert one["context"] < 40


def test_the_rest_of_a_project_comes_from_the_cache() -> None:
    words = ("--synthetic", "40", "--files", "1", "--json")
    cold = json.loads(run(*words, "--repetitions", "1").stdout)["changed"][0]
    done = run(*words, "--repetitions", "2", "--warm")
    assert done.returncode == 0, done.stderr
    warm = json.loads(done.stdout)["changed"][0]
    assert (warm["file"], warm["rows"]) == (cold["file"], cold["rows"] + 2)  # changed twice
    assert run("--warm").returncode == 2


def test_named_files_are_measured_and_what_is_found_is_counted(tmp_path: Path) -> None:
    (tmp_path / "meters.py").write_text(
        "class Meter:\n    def __init__(self):\n        self.values = []\n\n"
        "    def update(self, value):\n        self.values.append(value)\n"
    )
    (tmp_path / "train.py").write_text(
        "import torch\nfrom meters import Meter\n\n\ndef train(model, loader):\n    meter = Meter()\n"
        "    for x in loader:\n        loss = model(x).sum()\n        loss.backward()\n        meter.update(loss)\n"
    )
    done = run(str(tmp_path), "--changed", "train.py", "--repetitions", "1", "--json")
    assert done.returncode == 0, done.stderr
    (one,) = json.loads(done.stdout)["changed"]
    assert (one["file"], one["rows"], one["context"], one["findings"]) == ("train.py", 10, 1, 1)
    done = run(str(tmp_path), "--changed", "train.py", "--repetitions", "1")
    (row,) = [line for line in done.stdout.splitlines() if line.startswith("| train.py")]
    assert row.count("|") == 7
    assert "within 1.5 s" in done.stdout


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    done = run(str(tmp_path), "--changed", "none.py")
    assert done.returncode == 2
    assert "no such file" in done.stderr
