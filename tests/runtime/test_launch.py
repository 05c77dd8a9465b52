"""Programs run in fresh processes. Few, because each imports torch."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torchmemlint.runtime.launch import launch, order_for, workspace  # noqa: E402
from torchmemlint.runtime.order import Order, Program  # noqa: E402
from torchmemlint.runtime.results import End, RunResult  # noqa: E402

TRAIN = """
    import argparse
    import os
    import sys
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset
    from helper import evaluate

    torch.set_num_threads(1)
    parser = argparse.ArgumentParser()
    parser.add_argument("--width", type=int, default=16)
    width = parser.parse_args().width
    model = torch.compile(nn.Linear(width, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(torch.randn(400, width)), batch_size=4)
    kept = []
    for epoch in range(50):
        for (batch,) in loader:
            optimizer.zero_grad()
            loss = model(batch).square().mean()
            loss.backward()
            optimizer.step()
            kept.append(torch.ones(256))
        torch.save(model.state_dict(), "old.pt")
        torch.save(model.state_dict(), "new.pt")
        assert torch.load("old.pt")["weight"].shape == (1, width)
        evaluate(model, loader)
    print(sys.argv, os.listdir(), torch.load("new.pt").keys())
"""
HELPER = """
    import torch

    def evaluate(model, loader):
        with torch.no_grad():
            return sum(model(batch).mean() for (batch,) in loader)
"""


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(dedent(text))


def run(folder: Path, *words: str, **settings: Any) -> tuple[RunResult, Order, str]:
    with workspace() as space:
        order = order_for(Program(words[0], words[1:], directory=str(folder)), space, backend="cpu", **settings)
        result = launch(order)
        return result, order, (Path(order.folder) / "stdout").read_text()


def test_a_training_script_with_arguments(tmp_path: Path) -> None:
    write(tmp_path, train=TRAIN, helper=HELPER)
    (tmp_path / "old.pt").write_bytes(b"precious")
    result, order, out = run(tmp_path, "train.py", "--width", "8", steps=8)
    assert (result.end, result.error) == (End.FINISHED, None)
    assert out.startswith("['train.py', '--width', '8']")
    assert (result.series, result.steps) == ("optimizer 1", 16)  # two epochs of eight
    assert result.cut_passes == 4
    assert result.left_out == {"torch.save": 4, "torch.compile": 1}
    # 1024 bytes are appended in each step; the loop over the batches shows it to the byte.
    line = dedent(TRAIN).splitlines().index("    for (batch,) in loader:") + 1
    loop = next(one for one in result.growth if one.series == f"loop {tmp_path / 'train.py'}:{line}")
    assert (loop.growth.bytes_per_step, loop.growth.fit, loop.inside) == (1024.0, 1.0, False)
    assert result.growth_per_step == 1024.0
    assert len(result.step_peaks) == len(result.step_live) == 16
    assert all(peak >= live for peak, live in zip(result.step_peaks[1:], result.step_live, strict=False))
    assert max(result.step_peaks) <= result.peak
    assert (tmp_path / "old.pt").read_bytes() == b"precious"
    assert not (tmp_path / "new.pt").exists()
    assert not Path(order.folder).exists()
    assert RunResult.from_json(result.to_json()) == result


def test_without_the_tracker_results_are_the_same(tmp_path: Path) -> None:
    write(tmp_path, train=TRAIN, helper=HELPER)
    values = []
    with workspace() as space:
        for tracked in (True, False):
            program = Program("train", module=True, directory=str(tmp_path))
            order = order_for(program, space, backend="cpu", tracked=tracked, values=True, steps=4)
            result = launch(order)
            assert (result.end, result.error, result.steps) == (End.FINISHED, None, 8)
            assert result.seconds_per_step is not None
            values.append(torch.load(order.values_file))
    first, second = values
    assert first["losses"] == second["losses"]
    assert len(first["losses"]) == 8
    assert list(first["parameters"]) == ["0.0.0", "0.0.1"]
    assert all(torch.equal(first["parameters"][name], second["parameters"][name]) for name in first["parameters"])


def test_a_crash_is_told_with_its_traceback(tmp_path: Path) -> None:
    write(tmp_path, broken="import torch\n\ndef f():\n    raise KeyError('lost')\n\nf()\n")
    result, _, _ = run(tmp_path, "broken.py")
    assert (result.end, result.error, result.usable) == (End.FAILED, "KeyError: 'lost'", False)
    assert [line.strip() for line in result.traceback.splitlines() if "File" in line] == [
        f'File "{tmp_path / "broken.py"}", line 6, in <module>',
        f'File "{tmp_path / "broken.py"}", line 4, in f',
    ]


def test_a_program_that_holds_on_is_stopped(tmp_path: Path) -> None:
    text = """
        import subprocess, sys, time, torch
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        while True:
            try:
                time.sleep(0.01)
            except:
                pass
        """
    write(tmp_path, stubborn=text)
    began = time.monotonic()
    result, _, _ = run(tmp_path, "stubborn.py", seconds=4.0)
    assert (result.end, result.steps) == (End.TIME, 0)
    assert time.monotonic() - began < 25


def test_a_dead_process_is_told(tmp_path: Path) -> None:
    write(tmp_path, dies="import os, sys\nprint('oh', file=sys.stderr)\nos.kill(os.getpid(), 9)\n")
    result, _, _ = run(tmp_path, "dies.py")
    assert result.end is End.KILLED
    assert result.error == "the process was ended by SIGKILL (out of memory?)"
    assert result.traceback.endswith("oh\n")


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="groups of processes are POSIX's")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_child_ends_with_its_parent(tmp_path: Path, number: int) -> None:
    write(
        tmp_path,
        waits="import os, pathlib, time\npathlib.Path('pid').write_text(str(os.getpid()))\ntime.sleep(600)\n",
        parent="""
            import signal
            from pathlib import Path
            from torchmemlint.runtime.launch import launch, order_for, workspace
            from torchmemlint.runtime.order import Program

            signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's job in the background ignores it
            with workspace() as space:
                Path("space").write_text(str(space))
                launch(order_for(Program("waits.py", directory="."), space, backend="cpu"))
        """,
    )
    parent = subprocess.Popen([sys.executable, "parent.py"], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not (tmp_path / "pid").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(0.1)
    parent.send_signal(number)
    told = parent.communicate(timeout=60)[1]
    child = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + 30
    while runs(child) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not runs(child)
    if number == signal.SIGINT:
        assert told.endswith("KeyboardInterrupt\n")
        assert not Path((tmp_path / "space").read_text()).exists()


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="groups of processes are POSIX's")
def test_ctrl_c_ends_runs_that_go_side_by_side(tmp_path: Path) -> None:
    waits = """
        import os, pathlib, subprocess, sys, time
        inner = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        pathlib.Path(f"pid{os.getpid()}").write_text(str(inner.pid))
        time.sleep(600)
    """
    parent = """
        import signal
        from pathlib import Path
        from torchmemlint.runtime.launch import launch_all, order_for, workspace
        from torchmemlint.runtime.order import Program

        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's job in the background ignores it
        with workspace() as space:
            Path("space").write_text(str(space))
            orders = [order_for(Program("waits.py", directory="."), space, backend="cpu") for _ in range(3)]
            launch_all(orders, 2, lambda number: None, lambda number, made: None, lambda number: None)
    """
    write(tmp_path, waits=waits, parent=parent)
    process = subprocess.Popen([sys.executable, "parent.py"], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while len(list(tmp_path.glob("pid*"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(0.2)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    told = process.communicate(timeout=60)[1]
    took = time.monotonic() - began
    children = [int(text) for path in tmp_path.glob("pid*") for text in (path.name[3:], path.read_text())]
    assert len(children) == 4  # two at once of the three
    while any(map(runs, children)) and time.monotonic() < began + 10:  # init gathers those of the children's own
        time.sleep(0.02)
    assert not any(map(runs, children))
    assert told.endswith("KeyboardInterrupt\n")
    assert not Path((tmp_path / "space").read_text()).exists()
    assert took < 1.0


def runs(process: int) -> bool:
    """Whether it is there and no zombie."""
    done = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False)
    return bool(done.stdout.strip()) and not done.stdout.startswith("Z")
