"""The data file about torch's operations, against torch itself: a sample is derived again."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from torchmemlint.knowledge import operations, saved_tensors

torch = pytest.importorskip("torch")
TOOL = Path(__file__).parents[2] / "tools" / "torch_knowledge.py"


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("torch_knowledge", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["torch_knowledge"] = module  # where dataclasses look for what annotations mean
    spec.loader.exec_module(module)
    return module


def matrix() -> Any:
    return torch.rand(4, 4, requires_grad=True) * 0.5 + 0.3


CALLS: dict[str, Callable[[], tuple[Any, ...]]] = {
    **{
        f"torch.{name}": lambda: (matrix(),)
        for name in "exp sigmoid tanh relu log sin sqrt sum mean argmax isnan sort abs aminmax".split()
    },
    **{
        f"torch.nn.functional.{name}": lambda: (matrix(),)
        for name in "gelu silu softplus leaky_relu elu mish hardswish logsigmoid".split()
    },
    "torch.cumsum": lambda: (matrix(), 0),
    "torch.topk": lambda: (matrix(), 2),
    "torch.softmax": lambda: (matrix(), -1),
    "torch.matmul": lambda: (matrix(), matrix()),
    "torch.mul": lambda: (matrix(), matrix()),
    "torch.add": lambda: (matrix(), matrix()),
    "torch.eq": lambda: (matrix(), matrix()),
    "torch.zeros_like": lambda: (matrix(),),
    "torch.numel": lambda: (matrix(),),
    "torch.linalg.svd": lambda: (matrix(),),
    "torch.zeros": lambda: (4, 4),
    "torch.cat": lambda: ([matrix(), matrix()],),
}


@pytest.mark.parametrize("name", sorted(CALLS))
def test_a_sample_derived_again(name: str, tool: ModuleType) -> None:
    seen = tool.Seen()
    tool.observe(seen, tool._found(name), CALLS[name](), {})
    again = tool.entry(seen)
    known = operations.function(name)
    assert again is not None
    assert known is not None
    assert known.result in (again["result"], "varies")
    graph = again.get("graph", False)
    assert known.graph == (tuple(graph) if isinstance(graph, list) else graph)
    assert known.discrete == again.get("discrete", False)
    assert known.factory == again.get("factory", False)
    assert frozenset(again.get("saves", ())) <= known.saves


def test_modes_are_those_that_torch_sets(tool: ModuleType) -> None:
    assert tool.gradient_modes() == operations._data()["gradient_modes"]


def test_the_hand_written_lists_agree() -> None:
    functions = {name: operations.function(f"torch.{name}") for name in saved_tensors.OUTPUT_KEPT}
    disagreeing = [name for name, known in functions.items() if known is not None and "output" not in known.saves]
    assert not disagreeing


def test_what_is_not_covered_is_unknown() -> None:
    assert operations.function("torch.no_such_function") is None
    assert operations.method("no_such_method") is None
    assert operations.layer("NoSuchLayer") is None


def test_layers() -> None:
    linear, relu = operations.layer("Linear"), operations.layer("ReLU")
    assert linear is not None
    assert linear.parameters
    assert relu is not None
    assert (relu.parameters, relu.inplace) == (False, "argument")


def test_most_of_torch_is_covered(tool: ModuleType) -> None:
    covered = {name: have / of for name, have, of, _ in tool.coverage(operations._data())}
    assert covered["torch.Tensor"] > 0.85
    assert covered["torch.nn.functional"] > 0.8
    assert covered["torch"] > 0.6
