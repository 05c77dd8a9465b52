"""Files that never name torch, but have to do with files of their project that do."""

from __future__ import annotations

import pytest

from tests.cache.conftest import Project

NET = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 1)

    def forward(self, batch):
        return self.layer(batch).mean()
"""
EVALUATION = """def evaluate(models, loader):
    total = 0
    for batch in loader:
        total += models[0](batch)
    return float(total) / len(loader)
"""
TRAIN = """import torch
from evaluation import evaluate
from net import Net


def main(loader):
    net = Net()
    optimizer = torch.optim.Adam(net.parameters())
    for epoch in range(10):
        for batch in loader:
            optimizer.zero_grad()
            net(batch).backward()
            optimizer.step()
        {}


main([])
"""
RECORDING = TRAIN.format("print(evaluate([net], loader))")
QUIET = TRAIN.format("with torch.no_grad():\n            print(evaluate([net], loader))")
DRIVER = """from net import Net


def main(loader):
    net = Net()
    for batch in loader:
        print(float(net(batch)))


main([])
"""


def test_a_file_that_runs_what_importers_give_it(project: Project) -> None:
    project.write("net.py", NET)
    project.write("evaluation.py", EVALUATION)
    project.write("train.py", RECORDING)
    assert project.found(project.check("evaluation.py")) == [("evaluation.py", 4, "TML201")]
    project.write("train.py", QUIET)
    assert project.found(project.check("evaluation.py")) == []


def test_a_file_that_makes_what_another_defines(project: Project) -> None:
    project.write("net.py", NET)
    project.write("drive.py", DRIVER)
    assert project.found(project.check("drive.py")) == [("drive.py", 7, "TML201")]


@pytest.mark.parametrize("other", ["", "# torch is not needed\n", "import paddle\nimport torch\n"])
def test_a_project_of_another_framework_is_passed_over(project: Project, other: str) -> None:
    project.write("evaluation.py", EVALUATION)
    project.write("train.py", other + RECORDING.replace("import torch\n", "").replace("torch.optim", "optimizers"))
    report = project.check()
    assert {name for name, *_ in project.found(report)} <= {"train.py"}
    assert report.files_skipped == 1


def test_what_was_passed_over_is_checked_once_a_file_imports_it(project: Project) -> None:
    project.write("net.py", NET)
    project.write("evaluation.py", EVALUATION)
    report = project.check()
    assert (report.findings, report.files_skipped) == ((), 1)
    project.check()
    assert project.checked == []
    project.write("train.py", RECORDING)
    assert project.found(project.check()) == [("evaluation.py", 4, "TML201")]
    project.write("train.py", QUIET)
    assert project.found(project.check()) == []
