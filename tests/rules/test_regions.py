"""Passes that one fix runs with gradients off are one finding."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchmemlint.doubts import Confidence
from torchmemlint.engine.checking import check_text
from torchmemlint.findings import Finding
from torchmemlint.flow.project import Project

CODES = frozenset({"TML201", "TML203"})
PROGRAM = """
import torch
from torch import nn

first = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 64)).cuda()
second = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 64)).cuda()
optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)


def work(batches, show):
    for x in batches:
{body}

for _ in range(2):
    work(torch.randn(10, 32, 64, device="cuda"), print)
"""
STEP = """
second(first(x)).square().mean().backward()
optimizer.step()
optimizer.zero_grad()
"""


def found(body: str) -> list[Finding]:
    text = PROGRAM.format(body="".join(f"        {line}\n" for line in body.strip("\n").splitlines()))
    return check_text(text, Path("main.py"), CODES)


def changes(finding: Finding) -> list[str]:
    assert finding.fix is not None
    return [edit.content.strip() for edit in finding.fix.edits if "no_grad" in edit.content]


def test_all_passes_of_a_function_that_trains_nothing_are_one() -> None:
    (one,) = found("a = first(x)\nshow(a.detach().sum())\nb = second(x)\nshow(b.argmax(1).tolist())")
    assert one.message.endswith("(1 of 2 passes)")
    assert [link.message for link in one.evidence][:2] == [
        "the forward pass runs with gradients enabled",
        "so does `second(x)`",
    ]
    assert changes(one) == ["@torch.no_grad()"]


def test_rows_that_follow_each_other_are_one() -> None:
    (one,) = found(f"{STEP}\na = first(x)\n\nb = second(a)\nc = first(b)\nshow(a.detach(), b.detach(), c.detach())")
    assert one.message.endswith("(1 of 3 passes)")
    assert changes(one) == ["with torch.no_grad():"]


@pytest.mark.parametrize("between", ["show(a.detach())", "loss = second(first(x)).square().mean()\nloss.backward()"])
def test_rows_with_others_between_them_are_not(between: str) -> None:
    both = found(f"{STEP}\na = first(x)\n{between}\nb = second(x)\nshow(a.detach(), b.detach())")
    assert [changes(one) for one in both] == [["with torch.no_grad():"]] * 2


def test_a_block_of_its_own_is_apart() -> None:
    both = found(f"{STEP}\nif len(x) > 3:\n    a = first(x)\n    show(a.detach())\nb = second(x)\nshow(b.detach())")
    assert len(both) == 2


@pytest.mark.parametrize(
    ("returned", "wanted"),
    [
        ("F.cross_entropy(scores, labels)", "with torch.no_grad():"),
        ("criterion(scores, labels)", "with torch.no_grad():"),
        ("scores * labels[:, None]", "with torch.no_grad():"),
        ("scores if labels.sum() > 0 else scores", "@torch.no_grad()"),
        ("scores.detach().mean() + labels.sum()", "@torch.no_grad()"),
    ],
)
def test_what_computes_with_a_graph_of_its_caller_keeps_gradients(tmp_path: Path, returned: str, wanted: str) -> None:
    helper = f"""
import torch
import torch.nn.functional as F


def loss_of(scores, x, model, criterion):
    labels = model(x).argmax(1)
    return {returned}
"""
    main = PROGRAM.replace("import torch\n", "import torch\nfrom helper import loss_of\n", 1).format(
        body="""
        scores = first(x)
        loss = loss_of(scores, x, second, nn.CrossEntropyLoss()).mean() + scores.mean()
        loss.backward()
        optimizer.step()
"""
    )
    (tmp_path / "main.py").write_text(main)
    (tmp_path / "helper.py").write_text(helper)
    (one,) = check_text(helper, tmp_path / "helper.py", CODES, Project(tmp_path))
    assert one.confidence is Confidence.CERTAIN
    assert changes(one) == [wanted]


TAGGER = """
import torch


class Tagger:
    def __init__(self, first, second):
        self.first = first
        self.second = second

    def predict(self, x):
        coarse = self.first(x)
        size = coarse.argmax(1).float().mean()
        print(size.item())
        fine = self.second(x * size)
        return coarse, fine
"""
MADE = """
import torch
from torch import nn
from helper import Tagger

first = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 64)).cuda()
second = nn.Sequential(nn.Linear(64, 256), nn.Tanh(), nn.Linear(256, 64)).cuda()
"""
EVALUATING = """
first.eval()
second.eval()
tagger = Tagger(first, second)
for x in torch.randn(10, 32, 64, device="cuda"):
    coarse, fine = tagger.predict(x)
    print(coarse.argmax(1).tolist(), fine.argmax(1).tolist())
"""
ANSWERING = """
tagger = Tagger(first, second)


def answer(x, send):
    send(tagger.predict(x))
"""
TRAINING = """
tagger = Tagger(first, second)
optimizer = torch.optim.SGD(first.parameters(), lr=0.1)
for x in torch.randn(10, 32, 64, device="cuda"):
    optimizer.zero_grad()
    tagger.predict(x)[0].square().mean().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(("others", "wanted"), [(ANSWERING, "@torch.no_grad()"), (TRAINING, "with torch.no_grad():")])
def test_waste_of_one_run_is_no_need_of_another_that_leaves_it_open(tmp_path: Path, others: str, wanted: str) -> None:
    for name, text in (("helper", TAGGER), ("main", MADE + EVALUATING), ("others", MADE + others)):
        (tmp_path / f"{name}.py").write_text(text)
    found = check_text(TAGGER, tmp_path / "helper.py", CODES, Project(tmp_path))
    assert [changes(one) for one in found] == [[wanted]]
