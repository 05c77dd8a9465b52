"""Bugs that span files: networks of another object, losses that run one, callers that are not run, long runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchmemlint.doubts import Confidence, Doubt
from torchmemlint.engine.checking import check_text
from torchmemlint.findings import Finding
from torchmemlint.flow.project import Project

CODES = frozenset({"TML101", "TML102", "TML103", "TML201", "TML203"})


def check(root: Path, name: str, files: dict[str, str]) -> list[Finding]:
    for path, text in files.items():
        (root / path).write_text(text, encoding="utf-8")
    return check_text(files[name], root / name, CODES, Project(root))


CALLBACK = """
class Callback:
    {unset}

    def on_train_begin(self, trainer):
        self.trainer = trainer
"""

IMAGES = """
import torch
from callback import Callback


class Images(Callback):
    def __init__(self, samples):
        self.samples = samples

    def on_epoch_end(self, epoch):
        self.trainer.net.eval()
        for i in range(5):
            first, second = self.samples[i]
            pair = (first.unsqueeze(0), second.unsqueeze(0))
            _, shown = self.trainer.net(*pair)
            torch.save(shown.image.view(64, 64), str(i))
        self.trainer.net.train()
"""


@pytest.mark.parametrize("unset", ["pass", "trainer = None"])
def test_a_callback_runs_the_network_of_its_trainer(tmp_path: Path, unset: str) -> None:
    files = {"callback.py": CALLBACK.format(unset=unset), "images.py": IMAGES}

    (finding,) = check(tmp_path, "images.py", files)

    assert (finding.code, finding.span.start.row, finding.confidence) == ("TML201", 15, Confidence.POSSIBLE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    def on_epoch_end", "    @torch.no_grad()\n    def on_epoch_end"),
        ("self.trainer.net(*pair)", "self.trainer.net((4, 5))"),  # no tensor goes through it
        ("self.trainer.net.eval()", "pass"),
    ],
)
def test_a_callback_that_runs_none_or_needs_no_guard_costs_nothing(tmp_path: Path, old: str, new: str) -> None:
    assert old in IMAGES
    files = {"callback.py": CALLBACK.format(unset="pass"), "images.py": IMAGES.replace(old, new)}

    assert check(tmp_path, "images.py", files) == []


WORKER = """
import torch
from torch import nn
from registry import build_loss


class Worker:
    def __init__(self, settings):
        self.net = nn.Linear(8, 8)
        self.loss = build_loss(settings.loss)

    def priorities(self, memory):
        states = torch.FloatTensor(memory["states"])
        loss, _ = self.loss(self.net, states)
        return loss.detach().cpu().numpy() + 1e-6
"""

REGISTRY = "LOSSES = {}\n\n\ndef build_loss(name):\n    return LOSSES[name]()\n"


def test_a_loss_that_is_given_a_network_runs_it(tmp_path: Path) -> None:
    (finding,) = check(tmp_path, "worker.py", {"registry.py": REGISTRY, "worker.py": WORKER})

    assert (finding.code, finding.span.start.row, finding.confidence) == ("TML203", 14, Confidence.POSSIBLE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("loss.detach().cpu().numpy() + 1e-6", "loss"),  # a caller may differentiate it
        ("loss.detach().cpu().numpy()", "loss.cpu().numpy()"),  # which would raise if it had a graph
        ("    def priorities", "    @torch.no_grad()\n    def priorities"),
    ],
)
def test_a_loss_that_is_needed_or_has_no_graph_costs_nothing(tmp_path: Path, old: str, new: str) -> None:
    assert old in WORKER

    assert check(tmp_path, "worker.py", {"registry.py": REGISTRY, "worker.py": WORKER.replace(old, new)}) == []


ENGINE = """
from torch import nn


class Engine:
    def __init__(self, model: nn.Module):
        self.model = model
        self.model.eval()

    def infer_batch(self, batch):
        return self.model(batch)
"""

QUIET = """
import torch


def sparsify(engine, data):
    with torch.no_grad():
        for batch in data:
            engine.infer_batch(batch)
"""

STATISTICS = """
from parts import Points


def collect(engine, data, points: Points):
    for batch in data:
        points.add(engine.infer_batch(batch))
"""

CALLERS = {
    "engine.py": ENGINE,
    "quiet.py": QUIET,
    "statistics.py": STATISTICS,
    "parts.py": "class Points:\n    pass\n",
}


def test_callers_that_are_not_run_turn_no_gradients_off(tmp_path: Path) -> None:
    (finding,) = check(tmp_path, "engine.py", CALLERS)

    assert (finding.code, finding.span.start.row) == ("TML201", 11)
    assert Doubt.BY_NAME in finding.doubts


def test_what_is_kept_of_a_check_rests_on_callers_that_are_not_run(tmp_path: Path) -> None:
    """They may turn gradients off, too, before they are checked again."""
    for path, text in CALLERS.items():
        (tmp_path / path).write_text(text, encoding="utf-8")
    project = Project(tmp_path)

    check_text(ENGINE, tmp_path / "engine.py", CODES, project)

    assert tmp_path / "statistics.py" in {one.path for one in project.context(tmp_path / "engine.py")}


def test_callers_that_all_turn_gradients_off_say_so(tmp_path: Path) -> None:
    assert check(tmp_path, "engine.py", {"engine.py": ENGINE, "quiet.py": QUIET}) == []


def _long(calls: int) -> str:
    """A class with methods of which each calls the one before it twice, through what only a caller knows."""
    methods = "".join(
        f"    def m{n}(self, y):\n        self.m{n - 1}(y)\n        self.m{n - 1}(y)\n" for n in range(1, calls)
    )
    return f"class Calls:\n    def m0(self, y):\n        self.seen = y\n{methods}\nCalls().m{calls - 1}(net)\n"


METERS = """
class Mean:
    def __init__(self):
        self.sum = 0.0

    def add(self, value):
        self.sum += value
"""

TRAIN = """
import torch
from torch import nn
from meters import Mean

net = nn.Linear(4, 4)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
mean = Mean()
for x, y in torch.load("batches.pt"):
    loss = nn.functional.mse_loss(net(x), y)
    {backward}
    optimizer.step()
    optimizer.zero_grad()
    mean.add({value})
{long}
"""


def test_backward_has_run_through_what_a_long_run_keeps(tmp_path: Path) -> None:
    text = TRAIN.format(long=_long(22), backward="loss.backward()", value="loss")

    (finding,) = check(tmp_path, "train.py", {"meters.py": METERS, "train.py": text})

    assert (finding.code, finding.confidence, finding.doubts) == ("TML101", Confidence.POSSIBLE, (Doubt.CUT,))


@pytest.mark.parametrize(("backward", "value"), [("pass", "loss"), ("loss.backward()", "loss.item()")])
def test_what_a_long_run_may_yet_differentiate_is_a_guess(tmp_path: Path, backward: str, value: str) -> None:
    text = TRAIN.format(long=_long(22), backward=backward, value=value)

    assert check(tmp_path, "train.py", {"meters.py": METERS, "train.py": text}) == []


GRADIENTS = """
from torch import nn


class Gradients:
    def __init__(self, network):
        self.kept, self.handles = [], []
        for module in network.modules():
            if isinstance(module, nn.Linear):
                self.handles.append(module.register_full_backward_hook(self.keep))

    def keep(self, module, before, after):
        self.kept.append(after[0])

    def of(self, score):
        {begin}
        score.backward()
        return self.kept
"""
EXPLAINER = """
from gradients import Gradients


class Explainer:
    def __init__(self, network):
        self.network, self.gradients = network, Gradients(network)

    def explain(self, image):
        return self.gradients.of(self.network(image).max())
"""
EXPLAINING = """
from itertools import *

from explainer import Explainer
from torch import nn

explainers = {"full": Explainer(nn.Sequential(nn.Linear(8, 2)))}


def main(images):
    for image in images:
        for name in explainers:
            explainers[name].explain(image)


if __name__ == "__main__":
    main(list(chain([], [])))
"""


@pytest.mark.parametrize(("begin", "codes"), [("pass", ["TML803"]), ("self.kept = []", [])])
def test_a_list_of_hooks_is_emptied_where_they_are_written(tmp_path: Path, begin: str, codes: list[str]) -> None:
    texts = {"gradients.py": GRADIENTS.format(begin=begin), "explainer.py": EXPLAINER, "explaining.py": EXPLAINING}
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = check_text(texts["gradients.py"], tmp_path / "gradients.py", frozenset({"TML803"}), Project(tmp_path))
    assert [finding.code for finding in found] == codes
