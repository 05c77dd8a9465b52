"""What runs show beside the rules' own analysis: one cause is one finding, and every finding carries its evidence."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

from torchmemlint.engine.checking import check_text
from torchmemlint.findings import Finding

_CODES = frozenset({"TML101", "TML102", "TML103", "TML104", "TML106", "TML201", "TML202", "TML203", "TML701"})
_HEAD = """\
import torch
from torch import nn
from torch.nn import functional as F

"""


def _check(text: str) -> list[Finding]:
    return check_text(_HEAD + dedent(text).lstrip("\n"), Path("main.py"), _CODES)


def _told(text: str) -> list[tuple[str, str]]:
    """The findings as (code, text of the line)."""
    rows = (_HEAD + dedent(text).lstrip("\n")).splitlines()
    return [(finding.code, rows[finding.span.start.row - 1].strip()) for finding in _check(text)]


def test_what_a_wasted_pass_makes_is_no_finding_where_it_is_kept() -> None:
    text = """
        def collect(model: nn.Module, loader, store):
            model.eval()
            kept = store.tensor("kept")
            for x in loader:
                kept[x] = model(x)
            store.put(kept)
            model.train()
        """
    assert _told(text) == [("TML201", "kept[x] = model(x)")]


def test_a_graph_of_another_pass_is_a_finding_beside_waste() -> None:
    text = """
        def train(model: nn.Module, teacher: nn.Module, loader, optimizer, store):
            kept = store.tensor("kept")
            for x in loader:
                goal = teacher(x).detach()
                loss = F.mse_loss(model(x), goal)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                kept[x] = loss
            store.put(len(kept))
        """
    assert _told(text) == [("TML203", "goal = teacher(x).detach()"), ("TML102", "kept[x] = loss")]


def test_a_pass_is_no_finding_where_its_kept_graph_is_one() -> None:
    text = """
        def train(model: nn.Module, loader, optimizer):
            total = 0.0
            for x, y, held in loader:
                optimizer.zero_grad()
                F.mse_loss(model(x), y).backward()
                optimizer.step()
                total += F.mse_loss(model(held), y)
            print(float(total))
        """
    assert [code for code, _ in _told(text)] in (["TML101"], ["TML201"])


def test_a_helper_that_keeps_a_graph_and_its_call_are_one() -> None:
    text = """
        def add_all(box, *values):
            for value in values:
                box.append(value)

        def train(model: nn.Module, loader, optimizer):
            kept = []
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                add_all(kept, loss)
            print(len(kept))
        """
    assert _told(text) == [("TML102", "box.append(value)")]


def test_two_places_that_keep_one_graph_are_two_findings() -> None:
    text = """
        def train(model: nn.Module, loader, optimizer):
            total, kept = 0.0, []
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss
                kept.append(loss)
            print(total.item(), len(kept))
        """
    assert _told(text) == [("TML101", "total += loss"), ("TML102", "kept.append(loss)")]


def test_the_forward_that_wastes_a_graph_and_its_call_are_one() -> None:
    text = """
        class Vocoder(nn.Module):
            def __init__(self):
                super().__init__()
                self.model = nn.Linear(80, 1)
                self.model.eval()

            def forward(self, x):
                return self.model(x).detach()

        def main(spectrograms):
            vocoder = Vocoder()
            for spectrogram in spectrograms:
                print(vocoder(spectrogram).mean().item())
        """
    assert _told(text) == [("TML203", "print(vocoder(spectrogram).mean().item())")]


def test_a_mode_without_effect_is_told_by_the_pass_that_it_was_meant_for() -> None:
    text = """
        def babble(net: nn.Module, words):
            from torch.autograd import Variable

            hidden = torch.zeros(1, 8)
            word = Variable(torch.zeros(1, 8), volatile=True)
            for _ in range(words):
                out, hidden = net(word, hidden)
                word = out.detach().round()
        """
    assert _told(text) == [("TML203", "out, hidden = net(word, hidden)")]


def test_every_finding_carries_evidence() -> None:
    text = """
        encoder = nn.Linear(10, 10)
        print(int(torch.argmax(encoder(torch.rand(10)))))
        """
    found = _check(text)
    assert [finding.code for finding in found] == ["TML201"]
    assert all(finding.evidence for finding in found)


def test_an_entry_is_no_call() -> None:
    text = """
        def scores(model: nn.Module, loader):
            kept = []
            for x, y in loader:
                loss = F.mse_loss(model(x), y)
                loss.backward()
                kept.append(loss)
            print(len(kept))
        """
    (finding,) = _check(text)
    assert not any("call" in link.message for link in finding.evidence)
