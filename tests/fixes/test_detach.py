"""A detach is offered only where nothing can have been differentiated through it."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchmemlint.engine.checking import check_text
from torchmemlint.fixes.edits import apply_edits
from torchmemlint.rules.registry import by_code

ROOT = Path(__file__).parent.parent.parent / "fixtures"


@pytest.mark.parametrize(
    "name",
    [
        "TML102-graph-collection/bad_dict_differentiated_before.py",  # summed, and backward run, before it is kept
        "TML701-lightning-step-outputs/bad_kept_and_returned.py",  # Lightning differentiates the same dict's loss
    ],
)
def test_a_dict_made_before_it_is_kept_gets_no_fix(name: str) -> None:
    path = ROOT / name
    findings = check_text(path.read_text(encoding="utf-8"), path, frozenset(by_code()))
    kept = [finding for finding in findings if finding.code == name[:6]]
    assert kept
    assert all(finding.fix is None for finding in kept)


def test_a_dict_that_a_method_gives_is_not_detached() -> None:
    """It has no such method."""
    path = ROOT / "TML102-graph-collection/bad_stats_of_step.py"
    findings = check_text(path.read_text(encoding="utf-8"), path, frozenset({"TML102"}))
    assert [finding.fix for finding in findings] == [None]


PUT = {
    "totals[0], n = totals[0] + loss, x.size(0)": "totals[0], n = totals[0] + loss.detach(), x.size(0)",
    "(totals[0], n), m = [totals[0] + loss, 1], 2": "(totals[0], n), m = [totals[0] + loss.detach(), 1], 2",
    "kept[len(kept) :] = [loss]": "kept[len(kept) :] = [loss.detach()]",
    "known |= {len(known): loss}": "known |= {len(known): loss.detach()}",
    "kept += (loss,)": "kept += (loss.detach(),)",
    "totals[0] += loss.item() if len(x) > 3 else loss": ("totals[0] += loss.item() if len(x) > 3 else loss.detach()"),
    "totals[0] += loss * 2 if len(x) > 3 else loss": (
        "totals[0] += (loss * 2).detach() if len(x) > 3 else loss.detach()"
    ),
    "kept[len(kept) :] = (loss for _ in range(1))": None,
    "kept += [loss for _ in range(2)]": None,
    "kept += [loss, loss]": None,
}


@pytest.mark.parametrize("put", PUT)
def test_what_is_detached_is_a_tensor(put: str) -> None:
    text = TRAINING.replace("PUT", put)
    found = check_text(text, Path("train.py"), frozenset({"TML101", "TML102"}))
    fixed = [apply_edits(text, one.fix.edits) for one in found if one.fix is not None and one.fix.edits]
    wanted = PUT[put]
    assert fixed == ([] if wanted is None else [TRAINING.replace("PUT", wanted)])


TRAINING = """
import torch
from torch import nn

net = nn.Linear(3, 3)
opt = torch.optim.SGD(net.parameters(), lr=0.1)


def train(loader):
    totals, kept, known = [0.0], [], {}
    for x in loader:
        loss = net(x).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        PUT
    print(float(totals[0]), [float(one) for one in kept], [float(one) for one in known.values()])


train(torch.utils.data.DataLoader(torch.ones(8, 3)))
"""


def test_a_list_that_may_hold_a_graph_is_not_detached() -> None:
    text = """
import torch
from torch import nn


class Learner:
    def __init__(self, model, loader):
        self.model, self.loader, self.optimizer = model, loader, torch.optim.SGD(model.parameters(), 0.1)
        self.notes = []

    def fit(self):
        for x, y in self.loader:
            loss = (self.model(x) - y).square().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.notes = added(self.notes, loss)


def added(notes, note):
    notes += [note]
    return notes
"""
    found = check_text(text, Path("train.py"), frozenset({"TML101", "TML102", "TML103", "TML104"}))
    assert found
    assert all(one.fix is None or not one.fix.edits for one in found)


CARRIED = """
import torch
from torch import nn


def train(model, loader, scaler, optimizer, choice):
    for x, y in loader:
        {before}
        {carried}
        loss = (out - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main(loader, scaler, choice):
    model = nn.LSTMCell(4, 4)
    train(model, loader, scaler, torch.optim.SGD(model.parameters(), 0.1), choice)
"""


@pytest.mark.parametrize(
    ("before", "carried", "fixed"),
    [
        (
            "if choice == 1:\n            out, _ = model(x)\n        elif choice == 2:\n            out, _ = model(-x)",
            "out = scaler.undone(out)",
            None,
        ),
        ("out = y if x is None else model(x)[0]", "out = scaler.undone(out)", None),
        ("if x is loader[0]:\n            h = None", "out, h = model(x, h)", "out, h = model(x, h.detach())"),
    ],
)
def test_what_an_iteration_made_itself_is_not_detached(before: str, carried: str, fixed: str | None) -> None:
    text = CARRIED.format(before=before, carried=carried)
    found = check_text(text, Path("train.py"), frozenset({"TML104"}))
    made = [apply_edits(text, one.fix.edits) for one in found if one.fix is not None and one.fix.edits]
    assert made == ([] if fixed is None else [CARRIED.format(before=before, carried=fixed)])
