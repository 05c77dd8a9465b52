"""What rules about written-out tensors say to use instead, computed: results and gradients agree to rounding."""

from __future__ import annotations

import types
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from torchmemlint.engine.checking import check_text
from torchmemlint.findings import Finding
from torchmemlint.fixes.apply import fix_text

FIXTURES = Path(__file__).parents[2] / "fixtures"
LABELS = torch.tensor([0, 2, 1, 2, 0, 1])
OTHERS = torch.randn(5, 3, generator=torch.Generator().manual_seed(7))

Given = tuple[object, ...]
PLAYS: dict[str, dict[str, Callable[[Tensor], Given]]] = {
    "TML306-repeat-instead-of-expand/bad_in_one_expression.py": {
        "masked": lambda scores: (scores.view(2, 3, 3), OTHERS[:2]),
        "conditioned": lambda scores: (scores.view(2, 3, 3), OTHERS[:2]),
        "distance": lambda scores: (OTHERS[0].expand(6, 3), scores[0]),
    },
    "TML306-repeat-instead-of-expand/bad_by_name.py": {
        "attend": lambda scores: (scores.view(1, 2, 3, 3), torch.tensor([[[1, 1, 0]]]), 2),
    },
    "TML307-pairwise-broadcast/bad_distances.py": {
        "squared": lambda scores: (scores, OTHERS),
        "city_block": lambda scores: (scores, OTHERS),
        "of_batches": lambda scores: (scores.view(2, 3, 3), OTHERS[:4].view(2, 2, 3)),
        "by_method": lambda scores: (scores, OTHERS),
    },
    "TML309-unfused-log-softmax/bad_one_expression.py": {
        "phoneme_loss": lambda scores: (scores, LABELS),
        "move_loss": lambda scores: (lambda board: board * 2, scores, functional.one_hot(LABELS, 3)),
        "student_loss": lambda scores: (scores, torch.full((6, 3), 1 / 3), 2.0),
    },
}
"""The functions of fixtures that a fix changes, with what they are given."""


def fixed(name: str) -> str:
    """The fixture's text after all its fixes."""
    path = FIXTURES / name

    def check(text: str) -> list[Finding]:
        return check_text(text, path, frozenset({name[:6]}))

    text = path.read_text()
    findings = check(text)
    assert not fix_text(text, findings, check, unsafe=False).applied
    result = fix_text(text, findings, check, unsafe=True)
    assert len(result.applied) == len([f for f in findings if f.fix is not None and f.fix.edits])
    assert not [f for f in check(result.text) if f.fix is not None and f.fix.edits]
    return result.text


def loaded(text: str) -> types.ModuleType:
    module = types.ModuleType("fixture_under_proof")
    exec(compile(text, module.__name__, "exec", dont_inherit=True), vars(module))
    return module


@pytest.mark.parametrize("name", PLAYS)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_an_unsafe_fix_keeps_results_and_gradients_to_rounding(name: str, seed: int) -> None:
    before, after = loaded((FIXTURES / name).read_text()), loaded(fixed(name))
    for function, given in PLAYS[name].items():
        outcomes = []
        for program in (before, after):
            torch.manual_seed(seed)
            scores = torch.randn(6, 3, requires_grad=True)
            result = getattr(program, function)(*given(scores))
            torch.where(result.isinf(), 0.0, result).sum().backward()
            outcomes.append((result.detach(), scores.grad))
        torch.testing.assert_close(outcomes[1], outcomes[0])


def test_each_changed_function_is_computed() -> None:
    for name, functions in PLAYS.items():
        changed = fixed(name)
        for function in functions:
            assert _source(changed, function) != _source((FIXTURES / name).read_text(), function)


def _source(text: str, function: str) -> str:
    return text.partition(f"def {function}(")[2].partition("\ndef ")[0]


@pytest.mark.parametrize(
    ("unfused", "fused"),
    [
        (lambda x: torch.log(torch.softmax(x, 1)), lambda x: torch.log_softmax(x, 1)),
        (lambda x: torch.log(torch.softmax(x, 1) + 1e-8), lambda x: torch.log_softmax(x, 1)),
        (lambda x: torch.softmax(x, 1).clamp(min=1e-8).log(), lambda x: torch.log_softmax(x, 1)),
        (lambda x: torch.log(torch.sigmoid(x) + 1e-9), functional.logsigmoid),
        (lambda x: torch.log(1 - torch.sigmoid(x)), lambda x: functional.logsigmoid(-x)),
    ],
)
def test_what_the_page_of_tml309_says_to_be_equal(
    unfused: Callable[[Tensor], Tensor], fused: Callable[[Tensor], Tensor]
) -> None:
    torch.manual_seed(0)
    scores = torch.randn(64, 10, requires_grad=True)
    results = [function(scores) for function in (unfused, fused)]
    gradients = [torch.autograd.grad(result.square().sum(), scores)[0] for result in results]
    torch.testing.assert_close(results[0], results[1], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-4, atol=1e-4)


ROWS = functional.one_hot(LABELS, 3)


@pytest.mark.parametrize(
    ("dense", "indexed"),
    [
        (
            lambda x: functional.cross_entropy(x, ROWS.float()),
            lambda x: functional.cross_entropy(x, LABELS),
        ),
        (
            lambda x: functional.cross_entropy(x, ROWS.float(), reduction="sum", label_smoothing=0.1),
            lambda x: functional.cross_entropy(x, LABELS, reduction="sum", label_smoothing=0.1),
        ),
        (
            lambda x: functional.cross_entropy(x.view(2, 3, 3), ROWS.view(2, 3, 3).permute(0, 2, 1).float()),
            lambda x: functional.cross_entropy(x.view(2, 3, 3), LABELS.view(2, 3)),
        ),
        (
            lambda x: (x * ROWS).sum(-1),
            lambda x: x.gather(-1, LABELS.unsqueeze(-1)).squeeze(-1),
        ),
        (
            lambda x: (x * torch.zeros(6, 3).scatter_(1, LABELS.unsqueeze(1), 1)).sum(),
            lambda x: x.gather(1, LABELS.unsqueeze(1)).sum(),
        ),
        (lambda x: ROWS.float() @ (x.t() @ x), lambda x: (x.t() @ x)[LABELS]),
        (lambda x: torch.eye(3)[LABELS] @ (x.t() @ x), lambda x: functional.embedding(LABELS, x.t() @ x)),
        (lambda x: functional.linear(ROWS.float(), x), lambda x: x.t()[LABELS]),
        (
            lambda x: torch.einsum("bnk,kd->bnd", ROWS.view(2, 3, 3).float(), x[:3]),
            lambda x: x[:3][LABELS.view(2, 3)],
        ),
    ],
)
def test_what_the_page_of_tml308_says_to_be_equal(
    dense: Callable[[Tensor], Tensor], indexed: Callable[[Tensor], Tensor]
) -> None:
    torch.manual_seed(0)
    scores = torch.randn(6, 3, requires_grad=True)
    results = [function(scores) for function in (dense, indexed)]
    gradients = [torch.autograd.grad(result.square().sum(), scores)[0] for result in results]
    torch.testing.assert_close(results[0], results[1])
    torch.testing.assert_close(gradients[0], gradients[1])


def test_why_tml308_leaves_weighted_losses_alone() -> None:
    scores, weight = torch.randn(6, 3), torch.tensor([1.0, 2.0, 3.0])
    dense = functional.cross_entropy(scores, ROWS.float(), weight=weight)
    assert not torch.allclose(dense, functional.cross_entropy(scores, LABELS, weight=weight))


@pytest.mark.parametrize(
    ("paired", "small"),
    [
        (lambda x: (x[:, None] - OTHERS[None]).pow(2).sum(-1), lambda x: torch.cdist(x, OTHERS).pow(2)),
        (lambda x: ((x[:, None] - OTHERS[None]) ** 2).mean(-1), lambda x: torch.cdist(x, OTHERS).pow(2) / 3),
        (lambda x: (x.unsqueeze(1) - OTHERS.unsqueeze(0)).norm(dim=2), lambda x: torch.cdist(x, OTHERS)),
        (lambda x: functional.pairwise_distance(x[:, None], OTHERS[None], eps=0.0), lambda x: torch.cdist(x, OTHERS)),
        (lambda x: (x[None] - OTHERS[:, None]).abs().sum(2), lambda x: torch.cdist(OTHERS, x, p=1)),
        (lambda x: (x[:, None] * OTHERS[None]).sum(dim=2), lambda x: x @ OTHERS.t()),
        (
            lambda x: functional.cosine_similarity(x.unsqueeze(1), OTHERS.unsqueeze(0), dim=-1),
            lambda x: functional.normalize(x, dim=-1) @ functional.normalize(OTHERS, dim=-1).t(),
        ),
    ],
)
def test_what_the_page_of_tml307_says_to_be_equal(
    paired: Callable[[Tensor], Tensor], small: Callable[[Tensor], Tensor]
) -> None:
    torch.manual_seed(0)
    rows = torch.randn(40, 3, requires_grad=True)
    results = [function(rows) for function in (paired, small)]
    gradients = [torch.autograd.grad(result.square().sum(), rows)[0] for result in results]
    torch.testing.assert_close(results[0], results[1], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-4, atol=1e-4)


def test_why_tml307_leaves_gradients_of_gradients_alone() -> None:
    rows = torch.randn(4, 3, requires_grad=True)
    (slope,) = torch.autograd.grad(torch.cdist(rows, OTHERS).sum(), rows, create_graph=True)
    with pytest.raises(RuntimeError, match="_cdist_backward"):
        slope.square().sum().backward()
