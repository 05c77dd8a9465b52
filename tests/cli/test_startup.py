"""What gets imported, seen from fresh processes with the real rules."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from torchmemlint.measured import Measured, Measurements, Verdict

SCRIPT = """
import sys
from torchmemlint.cli.main import main
code = main({arguments!r})
sys.stdout.flush()
for name in {unwanted!r}:
    assert name not in sys.modules, name
sys.exit(code)
"""


def fresh(arguments: list[str], unwanted: list[str], directory: Path) -> subprocess.CompletedProcess[str]:
    script = SCRIPT.format(arguments=arguments, unwanted=unwanted)
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=directory, check=False)


@pytest.mark.parametrize("argument", ["--version", "--help"])
def test_version_and_help_are_light(tmp_path: Path, argument: str) -> None:
    done = fresh([argument], ["torch", "libcst", "rich", "pathspec", "multiprocessing"], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "torchmemlint" in done.stdout


def test_a_check_never_imports_torch(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import torch\n\n\ndef double(x: torch.Tensor) -> torch.Tensor:\n    return x * 2\n")
    done = fresh(["--isolated", "--jobs=1", "-n", "a.py"], ["torch", "numpy", "libcst", "importlib.metadata"], tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_tree_without_torch_is_not_parsed(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def broken(:\n")
    done = fresh(
        ["--isolated", "--jobs=1", "a.py"],
        ["torch", "torchmemlint.engine.checking", "torchmemlint.flow.facts"],
        tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_what_lives_at_the_end_is_not_looked_through_for_cycles(tmp_path: Path) -> None:
    script = """
import atexit, gc
atexit.register(lambda: print(len(gc.get_objects())))  # runs after what is registered later
from torchmemlint.cli.main import main
main(["check", "a.py", "--isolated", "-n"])
"""
    (tmp_path / "a.py").write_text("import torch\n")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, check=True)
    assert int(done.stdout.splitlines()[-1]) < 100


def test_results_of_an_earlier_run_need_no_analysis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCHMEMLINT_NO_CACHE")
    (tmp_path / "a.py").write_text("import torch\nwith torch.no_grad:\n    pass\n")
    time.sleep(2.1)  # a younger file might change again without a new time stamp
    arguments = ["--isolated", "--cache-dir=kept", "a.py"]
    first = fresh(arguments, ["torch"], tmp_path)
    second = fresh(arguments, ["torch", "libcst", "rich", "torchmemlint.flow.facts"], tmp_path)
    assert (second.returncode, second.stdout, second.stderr) == (1, first.stdout, "")
    assert "TML202" in second.stdout


def test_showing_what_was_measured_imports_neither_torch_nor_what_measures(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import torch\nwith torch.no_grad:\n    pass\n")
    found = fresh(["--isolated", "--jobs=1", "--output-format=json", "a.py"], [], tmp_path)
    figures = Measured(Verdict.CONFIRMED, "cpu", "", "2.13.0", "2026-11-21", "a.py", 1024.0, 0)
    (finding,) = json.loads(found.stdout)
    kept = Measurements(tmp_path).with_figures(finding["fingerprint"], "TML202", tmp_path / "a.py", figures)
    (tmp_path / "torchmemlint-measured.json").write_text(kept.to_text())
    done = fresh(["--isolated", "--jobs=1", "a.py"], ["torch", "torchmemlint.runtime.verification", "rich"], tmp_path)
    assert "= measured: +1.0 KiB per step (cpu, 2026-11-21)" in done.stdout
    assert (done.returncode, done.stderr) == (1, "")


def test_module_and_exit_code(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "torchmemlint", "--selct", "x"]
    assert subprocess.run(command, capture_output=True, cwd=tmp_path, check=False).returncode == 2
