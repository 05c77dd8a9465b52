from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "speed.py"

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(SCRIPT), *words], capture_output=True, text=True, check=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project-1.0"
    (folder / "package").mkdir(parents=True)
    (folder / "package" / "good.py").write_text("import torch\n")
    (folder / "package" / "broken.py").write_text("def (\n")
    (folder / "readme.txt").write_text("not Python\n")
    return folder


def test_every_run_is_measured(project: Path, tmp_path: Path) -> None:
    done = run(
        str(project), "--tools", "torchmemlint,ast.parse", "--repetitions", "2", "--cache", str(tmp_path), "--json"
    )
    assert done.returncode == 0, done.stderr
    (tree,) = json.loads(done.stdout)["trees"]
    assert (tree["name"], tree["files"], tree["bytes"]) == ("project-1.0", 2, 13 + 6)
    assert [tool["name"] for tool in tree["tools"]] == ["torchmemlint", "ast.parse"]
    for tool in tree["tools"]:
        assert len(tool["runs"]) == 2
        for one in tool["runs"]:
            assert 0.001 < one["seconds"] < 60
            assert 5_000_000 < one["process_peak"] <= one["total_peak"] < 1_000_000_000
    assert "note:" not in done.stderr


def test_the_table_has_a_row_for_each_tool(project: Path, tmp_path: Path) -> None:
    done = run(str(project), "--tools", "ast.parse", "--repetitions", "1", "--cache", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "### project-1.0: 2 files, 0.0 MB" in done.stdout
    (row,) = [line for line in done.stdout.splitlines() if line.startswith("| ast.parse")]
    assert row.count("|") == 9
    assert "| 1.00 |" in row


def test_an_unknown_tool_is_refused(tmp_path: Path) -> None:
    done = run("--tools", "speedometer", "--cache", str(tmp_path))
    assert done.returncode == 2
    assert "no such tool: speedometer" in done.stderr
