"""TML504 and TML506: files of tensors that are read in one place, and copied or kept in another."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchmemlint.engine.checking import check_text
from torchmemlint.findings import Applicability, Finding

CODES = frozenset({"TML504", "TML506"})


def check(text: str) -> list[Finding]:
    return check_text(text, Path("program.py"), CODES)


def found(text: str) -> list[tuple[int, str]]:
    return [(finding.span.start.row, finding.code) for finding in check(text)]


TRAINED = """import torch

def main(model: torch.nn.Module, path, loader, device):
    {read}
    model.load_state_dict({state})
    {then}
    for inputs in loader:
        model(inputs).sum().backward()
"""


def test_a_file_is_followed_through_methods_of_another_class() -> None:
    text = """import torch

class Files:
    def read(self, path):
        return torch.load(path)

class Trainer:
    def __init__(self, model):
        self.model = model
        self.files = Files()

    def resume(self, path):
        self.model.load_state_dict(self.files.read(path)["model"])
"""
    (finding,) = check(text)
    assert (finding.span.start.row, finding.code) == (5, "TML504")
    assert finding.evidence[1].span.start.row == 13


@pytest.mark.parametrize(
    ("then", "safe"),
    [
        ("print(state['epoch'])", True),
        ("keep(state)", False),
        ("mean = state['w'] / 2", False),
        ("return state['epoch']", False),
        ("model.other = state['w']", False),
    ],
)
def test_a_fix_is_safe_where_the_rest_is_read_as_numbers(then: str, safe: bool) -> None:
    text = f"""import torch

def resume(model, path):
    state = torch.load(path)
    model.load_state_dict(state['model'])
    {then}
"""
    (finding,) = check(text)
    assert finding.fix is not None
    assert finding.fix.applicability is (Applicability.SAFE if safe else Applicability.UNSAFE)


@pytest.mark.parametrize(
    ("read", "state", "then"),
    [
        ("saved = torch.load(path, map_location=device)", "saved", "pass"),
        ("saved = torch.load(path, map_location=device)['model']", "saved", "pass"),
        ("saved, epoch = torch.load(path, map_location=device)", "saved", "print(epoch)"),
        ("saved = torch.load(path, map_location=device)", "{k: v.float() for k, v in saved.items()}", "pass"),
    ],
)
def test_what_stays_bound_is_kept(read: str, state: str, then: str) -> None:
    assert found(TRAINED.format(read=read, state=state, then=then)) == [(4, "TML506")]


@pytest.mark.parametrize(
    ("read", "state", "then"),
    [
        ("saved = torch.load(path, map_location=device)", "saved", "del saved"),
        ("saved = torch.load(path, map_location=device)", "saved", "saved = path"),
        ("saved = torch.load(path, map_location=device)", "saved", "model.start = saved"),
        ("saved = torch.load(path, map_location=device)", "saved", "return"),
        ("saved = torch.load(path, map_location=device)", "other", "pass"),
    ],
)
def test_what_is_let_go_of_or_needed_is_not(read: str, state: str, then: str) -> None:
    assert found(TRAINED.format(read=read, state=state, then=then)) == []


def test_one_of_two_files_whose_tensors_meet_is_not_read_to_the_cpu() -> None:
    """The other one's tensors stay on the GPU, and both would meet in a sum."""
    text = """import torch
def ready(parameters):
    net = torch.nn.Linear(1000, 1000)
    net.load_state_dict(parameters)
    return net.cuda()
def soup(files):
    params = torch.load(files[0])
    for file in files[1:]:
        more = torch.load(file)
        mixed = {k: params[k].clone() * 0.5 + more[k].clone() * 0.5 for k in more}
        if ready(mixed)(torch.randn(5, 1000).cuda()).mean() > 0:
            params = mixed
    return ready(params)
def main(file):
    params = torch.load(file)
    print(params["epoch"] + 1)
    return ready(params)
soup(["a", "b"])
main("c")
"""
    edits = {one.span.start.row: one.fix.edits for one in check(text) if one.code == "TML504" and one.fix is not None}
    assert edits[7] == ()
    assert edits[15] != ()
