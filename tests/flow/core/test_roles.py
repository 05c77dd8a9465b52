"""What a name says of a function, and what it does, decide together how sure it is that it needs no gradients."""

from __future__ import annotations

import pytest

from torchmemlint.doubts import Confidence, Doubt
from torchmemlint.flow.fact.cases import cases

NET = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 1)

    def forward(self, x):
        return self.last(self.first(x))
"""
METHOD = "\n    def {name}(self, x):\n        x = nn.functional.pad(x, (2, 2))\n        return {result}\n"


def shown(text: str) -> list[tuple[str, Confidence, set[Doubt]]]:
    return [(case.code, case.confidence, set(case.doubts)) for case in cases({"main.py": text})]


@pytest.mark.parametrize("result", ["self.forward(x)", "self(x)", "self.last(x)"])
def test_a_method_that_infers_by_its_name(result: str) -> None:
    text = NET + METHOD.format(name="inference", result=result)
    assert shown(text) == [("TML201", Confidence.POSSIBLE, {Doubt.ROLE})]


@pytest.mark.parametrize(
    ("name", "result"),
    [("inference", "torch.no_grad()(self)(x)"), ("inference", "x"), ("encode", "self(x)"), ("logits", "self.last(x)")],
)
def test_a_method_that_does_not(name: str, result: str) -> None:
    assert shown(NET + METHOD.format(name=name, result=result)) == []


READING = NET + (
    "\n    def predict(self, x):\n        y = self(x)\n        {test}\n            y = y.data.numpy()\n"
    "        return [row for row in y]\n"
)


@pytest.mark.parametrize(
    "test",
    [
        "if type(y) == torch.Tensor:",
        "if type(y) is torch.Tensor:",
        "if isinstance(y, torch.Tensor):",
        "if type(y) != torch.Tensor:\n            pass\n        else:",
    ],
)
def test_what_is_left_of_a_tensor_that_a_test_names(test: str) -> None:
    (case,) = cases({"main.py": READING.format(test=test)})
    assert case.code == "TML203"


def test_what_is_left_of_another_kind() -> None:
    (case,) = cases({"main.py": READING.format(test="if type(y) is tuple:")})
    assert (case.code, case.confidence) == ("TML201", Confidence.POSSIBLE)


def test_what_stands_in_a_function_of_the_forward() -> None:
    """It is told where it is called for inference: training runs it, too."""
    forward = "        def apply(layer):\n            return layer(x)\n\n        return self.last(apply(self.first))\n"
    text = NET.replace("        return self.last(self.first(x))\n", forward)
    text += "\n    def predict(self, x):\n        return self.forward(x)\n"
    assert [case.line for case in cases({"main.py": text})] == [text.count("\n")]


def test_what_infers_calls_others() -> None:
    """It is told where that is done for inference."""
    helper = "\n\ndef apply(layer, x):\n    return layer(x)\n"
    text = NET + "\n    def predict(self, x):\n        return apply(self.first, x)\n"
    assert [case.line for case in cases({"main.py": text + helper})] == [text.count("\n")]


FUNCTION = NET + "\n\ndef {name}(network: Net, x):\n    {first}\n    return network(x)\n"


def test_a_function_that_infers_by_its_name() -> None:
    assert shown(FUNCTION.format(name="predict", first="x = x + 1")) == [("TML201", Confidence.POSSIBLE, {Doubt.ROLE})]


@pytest.mark.parametrize(("name", "first"), [("run", "x = x + 1"), ("predict", "torch.set_grad_enabled(False)")])
def test_a_function_that_does_not(name: str, first: str) -> None:
    assert shown(FUNCTION.format(name=name, first=first)) == []


SWITCHING = NET + (
    "\n    def {name}(self, x):\n        first = self.first(x)\n        self.eval()\n        {rest}\n"
    "        self.train()\n        return first + y\n"
)


def test_a_method_that_infers_by_its_name_and_by_what_it_does() -> None:
    """What comes before the switch is as little trained as what follows."""
    found = shown(SWITCHING.format(name="generate", rest="y = self.last(first)"))
    assert found == [("TML201", Confidence.LIKELY, {Doubt.EVALUATED}), ("TML201", Confidence.LIKELY, {Doubt.EVALUATED})]


@pytest.mark.parametrize(
    ("name", "rest"), [("distances", "y = first"), ("generate", "y = first.sum().backward() or first")]
)
def test_a_method_that_switches_for_something_else(name: str, rest: str) -> None:
    assert shown(SWITCHING.format(name=name, rest=rest)) == []
