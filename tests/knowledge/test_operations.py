"""The data file about torch's operations, against torch itself: a sample is derived again."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from torchmemlint.engine.checking import check_text
from torchmemlint.knowledge import modules, operations
from torchmemlint.knowledge.contracts import contracts

torch = pytest.importorskip("torch")
TOOL = Path(__file__).parents[2] / "tools" / "torch_knowledge.py"


@pytest.fixture(scope="module")
def tool() -> Iterator[ModuleType]:
    sys.path.insert(0, str(TOOL.parent))  # it imports another of the tools
    spec = importlib.util.spec_from_file_location("torch_knowledge", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["torch_knowledge"] = module  # where dataclasses look for what annotations mean
    spec.loader.exec_module(module)
    yield module
    sys.path.remove(str(TOOL.parent))


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


def test_the_data_names_its_torch(tool: ModuleType) -> None:
    assert operations.torch_version().count(".") == 2
    mine = ".".join(torch.__version__.split(".")[:2])
    if not operations.torch_version().startswith(mine + "."):
        pytest.skip("derived from another release")
    shown = {part: [covered, of] for part, covered, of, _ in tool.coverage(operations._data())}
    assert shown == operations._data()["coverage"]


def test_the_contract_of_torch_names_all_modes_that_torch_sets() -> None:
    known = contracts()
    terms = {"off": known.off, "on": known.on}
    for name, effect in operations.gradient_modes().items():
        plain, switch, _ = name.partition("(False)")
        assert plain in (known.setters if switch else terms[effect]), name


def test_layers_with_and_without_parameters() -> None:
    for name in ("Dropout", "PixelShuffle", "CrossEntropyLoss", "Upsample", "Identity"):
        assert modules.has_parameters(f"torch.nn.{name}") is False
    for name in ("Linear", "LSTM", "EmbeddingBag", "LazyLinear", "TransformerDecoder", "PReLU"):
        assert modules.has_parameters(f"torch.nn.{name}") is True
    assert modules.has_parameters("torch.nn.Sequential") is None


@pytest.mark.parametrize("name", ["Dropout2d", "ReLU", "ELU", "PixelShuffle", "TransformerDecoder"])
def test_a_sample_of_layers_derived_again(name: str, tool: ModuleType) -> None:
    pytest.importorskip("expecttest")
    known, again = operations.layer(name), tool.modules({name})[name]
    assert known is not None
    assert known.parameters == again.get("parameters", False)
    assert known.inplace_effect == again.get("inplace_effect", "")
    assert known.saves == frozenset(again["saves"])
    assert known.kind == again["kind"]


@pytest.mark.xfail(strict=True, reason="a run takes any function of torch to keep the graph")
def test_a_function_that_is_not_covered_is_unknown_to_the_analysis() -> None:
    text = """
import torch

def train(model, loader, optimizer):
    total = 0
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        total += torch.{}(loss)
    return total
"""
    codes = frozenset({"TML101"})
    assert check_text(text.format("square"), Path("a.py"), codes)
    assert not check_text(text.format("some_kernel_of_tomorrow"), Path("a.py"), codes)


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


def test_nearly_all_of_torch_is_covered(tool: ModuleType) -> None:
    """Of the release that the data was derived from, and of the one that is installed."""
    data = operations._data()
    derived = {name: (have, of, []) for name, (have, of) in data["coverage"].items()}
    installed = {name: (have, of, missing) for name, have, of, missing in tool.coverage(data)}
    assert derived.keys() == installed.keys()
    for name, (have, of, missing) in (*derived.items(), *installed.items()):
        assert have / of >= 0.95, (name, missing)


def test_what_is_saved_has_a_size() -> None:
    """Of measured operations; inputs and operands are as large as they are."""
    data = operations._data()
    for kind in ("functions", "methods", "modules"):
        for name, line in data[kind].items():
            roles = set(line.get("saves", ())) - {"input", "operand"}
            assert set(line.get("bytes", ())) <= roles, name
    assert operations.layer("Dropout").bytes == {"other": (1.0, 1.0)}
    assert operations.function("torch.sigmoid").bytes == {"output": (1.0, 1.0)}


FORMULAS = {  # what torch's own formula of the derivative mentions, which was not run
    "torch.cudnn_convolution": {"input", "operand"},
    "torch.mkldnn_max_pool2d": {"input", "output"},
}


@pytest.mark.parametrize("name", FORMULAS)
def test_what_no_cpu_can_run_is_read_off_formulas(name: str, tool: ModuleType) -> None:
    pytest.importorskip("yaml")
    short = name.removeprefix("torch.")
    assert set(tool.torch_formulas.by_formula([short])[short]["saves"]) == FORMULAS[name]
    known = operations.function(name)
    assert known is not None
    assert (known.saves, known.keeps) == (FORMULAS[name], frozenset())


def test_formulas_agree_with_what_was_measured(tool: ModuleType) -> None:
    pytest.importorskip("yaml")
    names = "exp sigmoid tanh mul mm bmm cumsum addcmul atan2 gather erf".split()
    for name, line in tool.torch_formulas.by_formula(names).items():
        known = operations.function(f"torch.{name}")
        assert known is not None
        assert known.saves <= set(line["saves"]), name
