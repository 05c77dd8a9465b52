"""`torchmemlint oom` from the command line. Needs no torch, but for what a simulated GPU records."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from runtime.schemas import OOM, validate

from snapshot.made import CALL, ENGINE, MADE, MIB, OPTIMIZER, Recorder, frame, snapshot
from torchmemlint.cli.main import main
from torchmemlint.runtime.simulated.allocator import OutOfMemory

TRAIN = """\
import torch
from torch import nn

from project.model import Net


def evaluate(model, batches):
    model.eval()
    outputs = []
    for batch in batches:
        outputs.append(model(batch))
    return torch.cat(outputs)


def fit(model, loader, optimizer):
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


net = Net()
fit(net, [], torch.optim.SGD(net.parameters(), lr=0.1))
evaluate(net, [])
"""
MODEL = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x):
        return torch.relu(self.layer(x))
"""
THERE = "/opt/build/project"


def failing(limit: int = 100 * MIB, device: int = 0) -> Recorder:
    """An evaluation that keeps every batch's graph until memory runs out, as another machine saw it."""
    made = Recorder(limit)
    made.allocate(
        20 * MIB, *MADE, frame(8, "__init__", f"{THERE}/model.py"), frame(23, "<module>", f"{THERE}/train.py")
    )
    inner = [*MADE, CALL, frame(11, "forward", f"{THERE}/model.py"), CALL]
    calls = [*inner, frame(11, "evaluate", f"{THERE}/train.py"), frame(25, "<module>", f"{THERE}/train.py")]
    with contextlib.suppress(OutOfMemory):
        while True:
            made.allocate(12 * MIB, *calls)
    return made


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src" / "project").mkdir(parents=True)
    (tmp_path / "src" / "project" / "train.py").write_text(TRAIN)
    (tmp_path / "src" / "project" / "model.py").write_text(MODEL)
    (tmp_path / "src" / "project" / "__init__.py").write_text("")
    return tmp_path


def dump(folder: Path, *made: Recorder, name: str = "snapshot.pickle") -> str:
    (folder / name).write_bytes(pickle.dumps(snapshot(*made)))
    return name


def as_json(capsys: pytest.CaptureFixture[str]) -> Any:
    values = json.loads(capsys.readouterr().out)
    validate(values, OOM)
    return values


def test_the_terminal(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["oom", dump(project, failing()), "src", "--isolated"]) == 1
    shown = capsys.readouterr().out
    assert "out of memory  src/project/model.py:11 in forward" in shown
    assert "asked for    12.0 MiB; torch asked CUDA for 12.0 MiB, which had 8.0 MiB free: 4.0 MiB missing" in shown
    assert "    72.0 MiB   78%  src/project/model.py:11 in forward  6 blocks, saved activation" in shown
    assert "    20.0 MiB   22%  src/project/model.py:8 in __init__  1 block, parameter" in shown
    assert "TML201 at src/project/train.py:11, which calls it: " in shown
    assert "at most 72.0 MiB: TML201 at src/project/train.py:11" in shown
    assert "72.0 MiB of this are not freed in the history: their kind is a guess" in shown
    assert (
        shown.endswith("Memory ran out once. 1 finding about these lines, in 3 files.\n") or "findings about" in shown
    )


def test_json(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["oom", dump(project, failing()), "src", "--isolated", "--output-format", "json"]) == 1
    values = as_json(capsys)
    assert values["out_of_memory"]
    assert values["checked"] == 3
    (device,) = values["devices"]
    (failed,) = device["failures"]
    assert failed["site"] == {
        "path": str(project / "src" / "project" / "model.py"),
        "line": 11,
        "function": "forward",
    }
    assert failed["missing"] == 4 * MIB
    found = failed["by_findings"]
    assert found["enough"]
    assert [told["code"] for told, _ in found["findings"]] == ["TML201"]
    assert sum(nbytes for _, nbytes in found["findings"]) == found["nbytes"] == 72 * MIB
    assert failed["moment"]["kinds"] == {"saved activation": 72 * MIB, "parameter": 20 * MIB}
    assert failed["moment"]["calls"]["nbytes"] == failed["moment"]["allocated"]
    assert sum(device["curve"]["by_kind"]["saved activation"][-1:]) == 72 * MIB


def test_without_sources(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["oom", dump(project, failing()), "--isolated"]) == 1
    shown = capsys.readouterr().out
    assert "Give the sources (SRC)" in shown
    assert f"{THERE}/model.py:11" in shown
    assert "4.0 MiB were missing" not in shown
    assert "lines" in shown


def test_memory_that_did_not_run_out(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = Recorder()
    for _ in range(9):
        block = made.allocate(6 * MIB, *MADE, CALL, frame(11, "forward", f"{THERE}/model.py"), CALL, frame(17))
        made.free(block, *ENGINE)
        made.free(made.allocate(MIB, *MADE, OPTIMIZER, frame(20)), OPTIMIZER)
        made.allocate(700, *MADE, frame(17, "fit", f"{THERE}/train.py"))
    assert main(["oom", dump(project, made), "src", "--isolated"]) == 0
    shown = capsys.readouterr().out
    assert "Live at the peak: " in shown
    assert "Memory did not run out." in shown
    assert "src/project/train.py:17  +700 B per step, the same in" in shown
    assert main(["oom", "snapshot.pickle", "--isolated", "--output-format", "json"]) == 0
    assert [one["bytes_per_step"] for one in as_json(capsys)["devices"][0]["growing"]] == [700]


def test_sources_that_changed_or_are_others(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = dump(project, failing())
    (project / "src" / "project" / "model.py").write_text("import torch\n" * 20 + MODEL)
    assert main(["oom", name, "src", "--isolated"]) == 1
    assert "src/project/model.py: changed since it ran" in capsys.readouterr().out
    assert main(["oom", name, "src/project/model.py", "--isolated"]) == 1
    assert f"not found in SRC, though it ran: {THERE}/train.py\n" in capsys.readouterr().out
    (project / "other").mkdir()
    (project / "other" / "thing.py").write_text("import torch\n")
    assert main(["oom", name, "other", "--isolated"]) == 1
    assert "no file of SRC is one that ran" in capsys.readouterr().out
    for folder in ("a", "b"):
        (project / folder).mkdir()
        (project / folder / "model.py").write_text(MODEL)
    assert main(["oom", name, "a", "b", "--isolated"]) == 1
    assert "several files of SRC may be meant" in capsys.readouterr().out


def test_rules_about_loading_explain_no_gpu_memory(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = """\
import torch
from torch.utils.data import DataLoader

from project.data import Cars

loader = DataLoader(Cars(), batch_size=32, num_workers=4, pin_memory=True)
for images, targets in loader:
    images = images.to("cuda")
    print(images.shape, targets.shape)
"""
    (project / "src" / "project" / "train.py").write_text(text)
    made = Recorder(30 * MIB)
    made.allocate(20 * MIB, *MADE, frame(9, "<module>", f"{THERE}/train.py"))
    with pytest.raises(OutOfMemory):
        made.allocate(40 * MIB, *MADE, frame(9, "<module>", f"{THERE}/train.py"))
    main(["src", "--isolated", "--select", "TML403"])
    assert "TML403" in capsys.readouterr().out
    assert main(["oom", dump(project, made), "src", "--isolated", "--output-format", "json"]) == 1
    (device,) = as_json(capsys)["devices"]
    assert device["peak"]["lines"][0]["findings"] == []


class _Harmful:
    def __reduce__(self) -> Any:
        return os.system, ("touch owned",)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (pickle.dumps({"segments": [_Harmful()]}), "not plain data: it names a function or class"),
        (pickle.dumps({"segments": []})[:-3], "cut off"),
        (b"", "the file is empty"),
        (b"not a pickle", "no pickle"),
        (pickle.dumps([1, 2]), "no snapshot"),
    ],
    ids=["os.system", "cut off", "empty", "text", "a list"],
)
def test_what_is_refused(project: Path, capsys: pytest.CaptureFixture[str], data: bytes, reason: str) -> None:
    (project / "bad.pickle").write_bytes(data)
    assert main(["oom", "bad.pickle"]) == 2
    told = capsys.readouterr()
    assert told.err.startswith("error: bad.pickle: ")
    assert reason in told.err
    assert not told.out
    assert not (project / "owned").exists()


def test_files_that_are_not_there(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["oom", "nowhere.pickle"]) == 2
    assert "nowhere.pickle: cannot be read: No such file" in capsys.readouterr().err
    assert main(["oom", dump(project, failing()), "nowhere"]) == 2
    assert "nowhere: no such file or directory" in capsys.readouterr().err


def test_names_in_a_snapshot_play_no_tricks(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = Recorder()
    made.allocate(MIB, frame(1, "\x1b[31mname</td>", "/home/\x1b[2J<script>/x.py"))
    name = dump(project, made)
    assert main(["oom", name, "--isolated", "--html", "page.html"]) == 0
    assert "\x1b" not in capsys.readouterr().out
    assert "<script" not in (project / "page.html").read_text()


def test_the_page(project: Path) -> None:
    pytest.importorskip("jinja2")
    assert (
        main(["oom", dump(project, failing(), failing(60 * MIB, 1)), "src", "--isolated", "--html", "page.html"]) == 1
    )
    page = (project / "page.html").read_text()
    for expected in (
        "Out of memory at <code>src/project/model.py:11</code>",
        "TML201",
        "<polygon",
        "<rect class",
        "cuda:0",
    ):
        assert expected in page
    assert "http" not in page.replace("http-equiv", "")


def test_it_needs_no_torch(project: Path) -> None:
    name = dump(project, failing())
    code = (
        "import sys\n"
        "sys.modules['torch'] = None\n"
        "from torchmemlint.cli.main import main\n"
        f"raise SystemExit(main(['oom', {name!r}, 'src', '--isolated', '--html', 'page.html']))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1, done.stderr
    assert "Memory ran out once." in done.stdout


RECORDED = """\
import torch
from torch import nn

torch.cuda.memory._record_memory_history()
seen = []
torch._C._cuda_attach_out_of_memory_observer(lambda *what: seen.append(what))
model = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512)).to("cuda")
optimizer = torch.optim.Adam(model.parameters())
for step in range(3):
    loss = model(torch.ones(64, 512, device="cuda")).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
try:
    torch.cuda.set_per_process_memory_fraction(0.002)  # of 40 GiB
    torch.empty(200 << 20, dtype=torch.uint8, device="cuda")
except torch.cuda.OutOfMemoryError:
    pass
print(seen)
torch.cuda.memory._dump_snapshot("snapshot.pickle")
"""


def test_a_simulated_gpu_records(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    viz = pytest.importorskip("torch.cuda._memory_viz")
    (project / "run.py").write_text(RECORDED)
    assert main(["trace", "--backend", "simulated", "--isolated", "-q", "run.py"]) == 0
    capsys.readouterr()
    whole = pickle.loads((project / "snapshot.pickle").read_bytes())
    assert "total_reserved" in viz.segsum(whole)
    assert "raise OutOfMemoryError" in viz.trace(whole)
    assert main(["oom", "snapshot.pickle", "run.py", "--isolated", "--output-format", "json"]) == 1
    (device,) = as_json(capsys)["devices"]
    assert device["steps"] >= 2
    (failed,) = device["failures"]
    assert (failed["requested"], failed["site"]["line"]) == (200 << 20, 16)
    kinds = device["peak"]["kinds"]
    parameters = 2 * (512 * 512 + 512) * 4
    assert kinds["parameter"] == kinds["gradient"] == parameters
    assert 2 * parameters <= kinds["optimizer state"] < 2.1 * parameters
    assert sum(kinds.values()) == device["peak"]["allocated"]
