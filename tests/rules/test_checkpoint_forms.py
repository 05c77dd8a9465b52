"""TML310's fix: the same gradients where the reentrant form gives any, and some where it gives none."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch

from torchmemlint.engine.checking import check_text
from torchmemlint.findings import Finding
from torchmemlint.fixes.apply import fix_text

FIXTURE = Path(__file__).parents[2] / "fixtures" / "TML310-implicit-reentrant-checkpoint" / "bad_blocks.py"


def check(text: str) -> list[Finding]:
    return check_text(text, FIXTURE, frozenset({"TML310"}))


def gradients(text: str, *, wanted: bool) -> list[torch.Tensor | None]:
    """Of a stack of blocks, where a gradient is or is not wanted of the input."""
    namespace: dict[str, object] = {}
    exec(compile(text, FIXTURE, "exec", dont_inherit=True), namespace)
    torch.manual_seed(0)
    model = namespace["Stack"](4, 3)  # type: ignore[operator]
    result = model(torch.randn(2, 4).requires_grad_(wanted)).sum()
    if result.requires_grad:
        result.backward()
    return [parameter.grad for parameter in model.parameters()]


def test_gradients_are_the_same_or_there_at_last() -> None:
    text = FIXTURE.read_text()
    result = fix_text(text, check(text), check, unsafe=True)
    assert len(result.applied) == 4
    assert check(result.text) == []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before, silent = gradients(text, wanted=True), gradients(text, wanted=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        after, heard = gradients(result.text, wanted=True), gradients(result.text, wanted=False)
    assert all(torch.equal(one, other) for one, other in zip(before, after, strict=True))  # type: ignore[arg-type]
    assert silent == [None] * len(heard)
    assert all(gradient is not None for gradient in heard)


def test_a_call_that_raises_is_said_to() -> None:
    text = FIXTURE.with_name("bad_keywords.py").read_text()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match="Unexpected keyword arguments: bias"):
            gradients(text, wanted=True)
    messages = [finding.message for finding in check(text)]
    assert ["`bias`: this call raises" in message for message in messages] == [True, False]
    result = fix_text(text, check(text), check, unsafe=True)
    assert all(gradient is not None for gradient in gradients(result.text, wanted=True))


SEQUENCE = """from torch.utils.checkpoint import checkpoint, checkpoint_sequential


def run(block, blocks, x):
    return checkpoint_sequential(blocks, 2, checkpoint(block, x))
"""


@pytest.mark.parametrize(("target", "found"), [("1.10", 0), ("1.11", 1), ("1.13", 1), ("2.0", 2), (None, 2)])
def test_a_torch_without_the_keyword_is_left_alone(target: str | None, found: int) -> None:
    assert len(check_text(SEQUENCE, FIXTURE, frozenset({"TML310"}), target=target)) == found
