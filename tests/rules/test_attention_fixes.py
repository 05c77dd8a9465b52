"""TML304's fixes, proven: the fixtures' modules before and after them give the same results and gradients."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("torch")
pytest.importorskip("einops")

import torch

from torchmemlint.engine.checking import check_text
from torchmemlint.findings import Finding, Severity
from torchmemlint.fixes.apply import FixResult, fix_text

FIXTURES = Path(__file__).parents[2] / "fixtures" / "TML304-materialised-attention"
CODES = frozenset({"TML304"})


def check(text: str, target: str | None = None) -> list[Finding]:
    return check_text(text, Path("attention.py"), CODES, target=target)


def fixed(text: str, target: str | None = None) -> FixResult:
    findings = check(text, target)
    return fix_text(text, findings, lambda changed: check(changed, target), unsafe=True)


@dataclass(frozen=True)
class Case:
    """A module of a fixture, what it is built with and called with."""

    file: str
    name: str
    built_with: tuple[object, ...]
    called_with: Callable[[], tuple[object, ...]]
    draws: bool = False  # has it a dropout?
    blind: bool = False  # is a query shown no key at all? Then the queries' gradients are not the same


def sequence() -> torch.Tensor:
    return torch.randn(2, 6, 16)


def hidden_keys() -> torch.Tensor:
    hidden = torch.zeros(2, 1, 1, 6, dtype=torch.bool)
    hidden[0, ..., 4:] = True
    return hidden


CASES = (
    Case("bad_heads", "ScaledScores", (16, 4), lambda: (sequence(),), draws=True),
    Case("bad_heads", "ScaledQueries", (16, 4), lambda: (sequence(),)),
    Case("bad_heads", "RootOfWidth", (16, 4), lambda: (sequence(),), draws=True),
    Case("bad_heads", "Half", (16,), lambda: (sequence(), torch.randn(2, 9, 16))),
    Case("bad_masks", "Causal", (16, 4), lambda: (sequence(),), draws=True),
    Case("bad_masks", "Optional", (16, 4), lambda: (sequence(),)),
    Case("bad_masks", "Optional", (16, 4), lambda: (sequence(), (~hidden_keys()).float())),
    Case("bad_masks", "Optional", (16, 4), lambda: (sequence(), torch.zeros(2, 1, 6, 6)), blind=True),
    Case("bad_masks", "Bias", (16, 4), lambda: (sequence(), torch.randn(6, 6))),
    Case("bad_masks", "Kept", (16, 4), lambda: (sequence(), ~hidden_keys())),
    Case("bad_masks", "Kept", (16, 4), lambda: (sequence(), torch.zeros(6, 6, dtype=torch.bool)), blind=True),
    Case("bad_masks", "InPlace", (16, 4), lambda: (sequence(), hidden_keys())),
    Case("bad_spellings", "Batched", (16, 4), lambda: (sequence(),)),
    Case("bad_spellings", "Added", (16,), lambda: (sequence(), torch.randn(2, 6, 6))),
    Case("bad_spellings", "Subscripts", (16, 4), lambda: (sequence(),)),
    Case("bad_spellings", "HeadsInside", (16, 4), lambda: (sequence(), hidden_keys())),
    Case("bad_spellings", "KeysFirst", (16,), lambda: (sequence(),)),
    Case("bad_spellings", "Ellipsis", (16,), lambda: (sequence(),)),
    Case("bad_named_axes", "Causal", (16, 4), lambda: (sequence(),)),
    Case("bad_named_axes", "Whole", (16,), lambda: (sequence(),)),
    Case("bad_images", "Convolved", (8, 2), lambda: (torch.randn(2, 8, 3, 5),)),
)


def modules(file: str) -> tuple[SimpleNamespace, SimpleNamespace]:
    text = (FIXTURES / f"{file}.py").read_text()
    result = fixed(text)
    assert result.applied
    assert "scaled_dot_product_attention" in result.text
    both = []
    for source in (text, result.text):
        namespace: dict[str, object] = {}
        exec(compile(source, file, "exec", dont_inherit=True), namespace)
        both.append(SimpleNamespace(**namespace))
    return both[0], both[1]


def run(module: torch.nn.Module, inputs: tuple[object, ...]) -> list[torch.Tensor]:
    """The result, and the gradients of inputs and parameters."""
    given = [
        value.clone().requires_grad_() if isinstance(value, torch.Tensor) and value.is_floating_point() else value
        for value in inputs
    ]
    result = module(*given)
    generator = torch.Generator().manual_seed(3)
    (result * torch.randn(result.shape, generator=generator)).sum().backward()
    leaves = [value for value in given if isinstance(value, torch.Tensor)] + list(module.parameters())
    return [result.detach(), *(leaf.grad for leaf in leaves if leaf.grad is not None)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.file}-{case.name}")
@pytest.mark.parametrize("training", [False, True], ids=["evaluation", "training"])
def test_results_and_gradients_are_equal(case: Case, training: bool) -> None:
    before, after = modules(case.file)
    torch.manual_seed(0)
    inputs = case.called_with()
    built = []
    for namespace in (before, after):
        torch.manual_seed(1)
        module = getattr(namespace, case.name)(*case.built_with).train(training)
        if training and case.draws:  # what a dropout draws differs, unless it keeps everything
            switch(module, 0.0)
        built.append(run(module, inputs))
    assert len(built[0]) == len(built[1]) > 1
    for one, other in list(zip(*built, strict=True))[: 1 if case.blind else None]:
        assert torch.isfinite(one).all()
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def switch(module: torch.nn.Module, p: float) -> None:
    """Set the probability of each dropout of attention weights."""
    if hasattr(module, "p"):
        module.p = p
    for inner in module.modules():
        if isinstance(inner, torch.nn.Dropout):
            inner.p = p


@pytest.mark.parametrize("case", [case for case in CASES if case.draws], ids=lambda case: case.name)
def test_dropout_counts_in_training_only_and_as_strongly(case: Case) -> None:
    torch.manual_seed(0)
    inputs = case.called_with()
    _, after = modules(case.file)
    torch.manual_seed(1)
    module = getattr(after, case.name)(*case.built_with)
    switch(module, 0.5)
    plain = module.eval()(*inputs)
    assert torch.equal(plain, module(*inputs))
    module.train()
    assert not torch.allclose(plain, module(*inputs))
    mean = torch.stack([module(*inputs) for _ in range(3000)]).mean(0)
    torch.testing.assert_close(mean, plain, rtol=0.1, atol=0.1)


def test_the_default_scale_needs_no_argument() -> None:
    text = (FIXTURES / "bad_heads.py").read_text()
    assert "scale=" not in fixed(text).text.split("class RootOfWidth")[1].split("class Half")[0]


def test_without_the_argument_scale_only_the_default_one_is_fixed() -> None:
    text = (FIXTURES / "bad_heads.py").read_text()
    result = fixed(text, "2.0")
    assert len(check(text, "2.0")) == 4
    assert len(result.applied) == 2
    assert "scale=" not in result.text.replace("self.scale =", "")


def test_where_torch_before_2_is_supported_it_is_advice() -> None:
    found = check((FIXTURES / "bad_heads.py").read_text(), "1.13")
    assert len(found) == 4
    assert all(finding.severity is Severity.ADVICE and finding.fix is None for finding in found)
    assert all("torch 2.0" in finding.message for finding in found)


PARTS = """
import torch, math
import torch.nn.functional as F
from torch import nn

class Attention(nn.Module):
    def __init__(self, d, p):
        super().__init__()
        self.scale = d ** -0.5
        self.drop = nn.Dropout(p) if p else nn.Identity()
        self.root = torch.sqrt(torch.FloatTensor([d]))

    def forward(self, q, k, v, mask, bias):
        {body}
"""

UNFIXED = {
    "a mask that is scaled, too": """
        scores = (q @ k.transpose(-2, -1) + bias) * self.scale
        return scores.softmax(-1) @ v
""",
    "a filling number that is not far below": """
        scores = (q @ k.transpose(-2, -1) * self.scale).masked_fill(mask, -100.0)
        return scores.softmax(-1) @ v
""",
    "a scale that is a tensor": """
        scores = q @ k.transpose(-2, -1) / self.root
        return scores.softmax(-1) @ v
""",
    "a dropout that may be none": """
        attn = self.drop((q @ k.transpose(-2, -1) * self.scale).softmax(-1))
        return attn @ v
""",
    "queries that are changed in between": """
        scores = q @ k.transpose(-2, -1) * self.scale
        q = q + 1
        return scores.softmax(-1) @ v + q
""",
    "values that are deleted in between": """
        scores = q @ k.transpose(-2, -1) * self.scale
        del q, k
        return scores.softmax(-1) @ v
""",
    "keys that are changed in place in between": """
        scores = q @ k.transpose(-2, -1) * self.scale
        k.zero_()
        return scores.softmax(-1) @ v
""",
    "scores whose shape is asked for": """
        scores = q @ k.transpose(-2, -1) * self.scale
        assert scores.shape[-1] == v.shape[-2]
        return scores.softmax(-1) @ v
""",
    "two statements on a line": """
        scores = q @ k.transpose(-2, -1) * self.scale; other = 1
        return scores.softmax(-1) @ v * other
""",
    "more than the mask in a condition": """
        scores = q @ k.transpose(-2, -1) * self.scale
        if mask is not None:
            mask = mask[:, None]
            scores = scores.masked_fill(mask, float("-inf"))
        return scores.softmax(-1) @ v
""",
    "weights of a wider dtype": """
        weights = (q @ k.transpose(-2, -1) * self.scale).softmax(-1, dtype=torch.float32)
        return weights @ v
""",
    "sums of values in two branches": """
        attn = (q @ k.transpose(-2, -1) * self.scale).softmax(-1)
        if bias is None:
            out = attn @ v
        else:
            out = attn @ v + bias
        return out
""",
    "zeros where everything is hidden": """
        scores = (q @ k.transpose(-2, -1) * self.scale).masked_fill(mask, float("-inf"))
        return scores.softmax(-1).masked_fill(mask, 0.0) @ v
""",
}


@pytest.mark.parametrize("name", UNFIXED)
def test_no_fix_where_it_is_not_proven(name: str) -> None:
    text = PARTS.format(body=UNFIXED[name].strip())
    found = check(text)
    assert len(found) == 1, found
    assert found[0].fix is None


def test_comments_and_other_statements_stay_but_those_behind_what_goes() -> None:
    text = PARTS.format(
        body="""
        scores = q @ k.transpose(-2, -1)  # all pairs
        # Half a bit less.
        scores = scores * self.scale
        size = v.size(-1)
        out = scores.softmax(-1) @ v  # the sum
        return out, size
""".strip()
    )
    assert fixed(text).text == PARTS.format(
        body="""
        # Half a bit less.
        size = v.size(-1)
        out = F.scaled_dot_product_attention(q, k, v, scale=self.scale)  # the sum
        return out, size
""".strip()
    )


ATTENDING = """
import torch
from torch import nn

class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.scale = width ** -0.5
        self.attend = nn.Softmax(dim=-1)
        self.qkv = nn.Linear(width, width * 3)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        weights = self.attend(q @ k.transpose(-2, -1) * self.scale)
        return weights @ v
{more}
"""
READ = {
    "nobody": ("", False),
    "another method": ("    def of(self, x):\n        return self.attend(x)", True),
    "another object": ("Attention(8, 2).attend.requires_grad_(False)", True),
    "somebody by its name": ("getattr(Attention(8, 2), 'attend')", True),
    "a class that comes of it": ("class Other(Attention):\n    pass", True),
}


def test_no_fix_that_turns_everything_twice_over() -> None:
    spatial = (FIXTURES / "bad_images.py").read_text().split("class Convolved")[0]
    assert [finding.fix for finding in check(spatial)] == [None]


@pytest.mark.parametrize("name", READ)
def test_a_softmax_goes_that_nobody_runs_any_more(name: str) -> None:
    more, stays = READ[name]
    result = fixed(ATTENDING.format(more=more)).text
    assert "scaled_dot_product_attention(q, k, v, scale=self.scale)" in result
    assert ("self.attend = nn.Softmax(dim=-1)" in result) is stays
