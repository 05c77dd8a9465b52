"""What the fixtures of the in-place rules claim, run with torch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from torchmemlint.engine.checking import check_text
from torchmemlint.fixes.apply import fix_text

torch = pytest.importorskip("torch")

FIXTURES = Path(__file__).parent.parent.parent / "fixtures"
HAZARDS, OUT_OF_PLACE = FIXTURES / "TML302-inplace-hazard", FIXTURES / "TML301-out-of-place-activation"


def namespace(text: str) -> dict[str, Any]:
    found: dict[str, Any] = {"__name__": "fixture"}
    torch.manual_seed(0)
    exec(compile(text, "fixture", "exec"), found)
    return found


def image(channels: int, size: int = 8) -> Any:
    torch.manual_seed(1)
    return torch.randn(2, channels, size, size)


def run(module: Any, *inputs: Any) -> None:
    result = module(*inputs)
    parts = result if isinstance(result, tuple) else (result,)
    sum(part.sum() for part in parts).backward()


RAISING: dict[str, tuple[str, Callable[[dict[str, Any]], None]]] = {
    "attention": ("bad_needs_its_output", lambda m: run(m["Attention"](4), torch.rand(2, 3, 4), None)),
    "hidden": ("bad_needs_its_output", lambda m: run(m["Hidden"](4), image(4))),
    "sequential": ("bad_needs_its_output", lambda m: run(m["broken"], torch.rand(2, 8))),
    "encoder": ("bad_needs_its_input", lambda m: run(m["Encoder"](4), torch.rand(2, 3, 4))),
}


@pytest.mark.parametrize("name", RAISING)
def test_what_is_called_an_error_raises_and_its_fix_does_not(name: str) -> None:
    file, program = RAISING[name]
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        program(namespace((HAZARDS / f"{file}.py").read_text()))
    program(namespace((HAZARDS / f"{file}.fixed.py").read_text()))


def test_parameters_are_not_overwritten() -> None:
    module = namespace((HAZARDS / "bad_parameters_and_views.py").read_text())
    with pytest.raises(RuntimeError, match="leaf Variable"):
        run(module["Scale"](4), torch.rand(2, 4, 10))
    with pytest.raises(RuntimeError, match="leaf Variable"):
        module["positive"](torch.rand(3))


def fixed(path: Path, code: str) -> str:
    text = path.read_text()
    codes = frozenset({code})
    result = fix_text(text, check_text(text, path, codes), lambda new: check_text(new, path, codes), unsafe=True)
    assert result.applied
    return result.text


@pytest.mark.parametrize("name", ["Residual", "Branches", "Gate", "Chunks"])
def test_what_is_called_corruption_changes_the_result(name: str) -> None:
    path = HAZARDS / "bad_value_used_later.py"
    inputs = image(4) if name in ("Residual", "Branches") else torch.randn(2, 4)
    results = []
    for text in (path.read_text(), fixed(path, "TML302")):
        module = namespace(text)[name]
        torch.manual_seed(0)
        results.append(module(4)(inputs.clone()))
    assert not torch.allclose(*results)


PROGRAMS: dict[str, tuple[str, Callable[[dict[str, Any]], Any], Callable[[], Any]]] = {
    "conv": ("bad_sequential", lambda m: m["saves_one"], lambda: image(3)),
    "linear": ("bad_sequential", lambda m: m["perceptron"], lambda: torch.randn(4, 10)),
    "transient": ("bad_sequential", lambda m: m["only_transient"], lambda: image(3, 24)),
    "block": ("bad_forward", lambda m: m["Block"](4), lambda: image(4)),
    "steps": ("bad_forward", lambda m: m["Steps"](4), lambda: torch.randn(2, 4)),
    "functional": ("bad_forward", lambda m: m["Functional"](4), lambda: torch.randn(2, 4, 12)),
    "factory": ("bad_factory", lambda m: m["conv_block"](3, 8), lambda: image(3)),
    "subclass": ("bad_factory", lambda m: m["ConvNormAct"](3, 8), lambda: image(3)),
    "list": ("bad_factory", lambda m: m["critic"](4), lambda: torch.randn(2, 4)),
    "named": ("bad_factory", lambda m: m["named"], lambda: image(3)),
    "sum": ("bad_sum_of_branches", lambda m: m["Fuse"](4), lambda: image(4)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_working_in_place_changes_no_result_and_no_gradient(name: str) -> None:
    file, build, inputs = PROGRAMS[name]
    path = OUT_OF_PLACE / f"{file}.py"
    outcomes = []
    for text in (path.read_text(), fixed(path, "TML301")):
        torch.manual_seed(0)
        module = build(namespace(text))
        torch.manual_seed(2)
        x = inputs().requires_grad_()
        result = module(x)
        result.square().sum().backward()
        outcomes.append([result.detach(), x.grad, *(p.grad for p in module.parameters())])
    for before, after in zip(*outcomes, strict=True):
        # ELU and its kin derive from their output when in place, and round otherwise.
        torch.testing.assert_close(after, before, rtol=1e-3, atol=1e-4)
