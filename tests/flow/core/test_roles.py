"""What a name says of a function, and what it does, decide together how sure it is that it needs no gradients."""

from __future__ import annotations

import pytest

from torchmemlint.doubts import Confidence, Doubt

from .findings import cases

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


EXTRACTOR = NET + (
    "\n\nclass Extractor{base}:\n    def __init__(self{given}):\n        {first}self.network = {made}\n\n"
    "    def {name}(self, x):\n        return {result}\n"
)
OWN = {"base": "", "given": "", "first": "", "made": "Net()", "name": "__call__", "result": "self.network(x).detach()"}


def unmade(**changes: str) -> list[bool]:
    return [case.unmade for case in cases({"main.py": EXTRACTOR.format(**OWN | changes)})]


def test_a_method_of_a_class_that_nobody_makes() -> None:
    """Whoever makes the object has no say in a network that the object makes itself."""
    assert unmade() == [False]


def test_what_is_given_to_a_class_that_nobody_makes() -> None:
    assert unmade(given=", network: Net", made="network") == [True]


def test_a_method_of_a_network_that_nobody_makes() -> None:
    """Who runs a network's methods turns gradients off around them."""
    own = {"base": "(nn.Module)", "first": "super().__init__()\n        ", "name": "act"}
    assert unmade(**own, result="self.network(x).argmax()") == [True]


DISTILLED = NET + (
    "\n\nclass Distilled(nn.Module):\n    def __init__(self, teacher, student):\n"
    "        super().__init__()\n        self.teacher, self.student = teacher, student\n\n"
    "    def forward(self, x):\n        goal = self.teacher(x).detach()\n        return {result}\n"
)


@pytest.mark.parametrize(("result", "expected"), [("(self.student(x) - goal).mean()", False), ("goal", True)])
def test_what_stands_beside_a_pass_that_is_handed_out(result: str, expected: bool) -> None:
    """Who calls it trains the student, and has gradients on."""
    (case,) = cases({"main.py": DISTILLED.format(result=result)})
    assert (case.code, case.unmade) == ("TML203", expected)


PREDICTING = (
    "import torch\nfrom torch import nn\nfrom transformers import Trainer\n\n\nclass Ranker(Trainer):\n"
    "    def compute_loss(self, model: nn.Module, inputs, return_outputs=False):\n"
    "        return model(inputs['x']).mean()\n\n"
    "    def prediction_step(self, model: nn.Module, inputs, prediction_loss_only, ignore_keys=None):\n"
    "        with {context}:\n            loss = self.compute_loss(model, inputs)\n        return loss, None, None\n"
)


@pytest.mark.parametrize(("context", "expected"), [("open('log')", [False]), ("torch.no_grad()", [])])
def test_what_a_framework_calls_to_predict(context: str, expected: list[bool]) -> None:
    assert [case.unmade for case in cases({"main.py": PREDICTING.format(context=context)})] == expected


PIPELINE = (
    "import torch\nfrom diffusers import DiffusionPipeline\n\n\nclass Custom(DiffusionPipeline):\n"
    "    {decorator}\n    def __call__(self, latents, steps):\n        for step in steps:\n"
    "            latents = latents - self.unet(latents, step).sample\n        return latents\n"
)


def test_a_pipeline_that_records_a_graph() -> None:
    """Users call it as it is: the library's own pipelines turn gradients off themselves."""
    found = shown(PIPELINE.format(decorator="# as it is"))
    assert found == [("TML201", Confidence.LIKELY, {Doubt.NETWORK_BY_USE})]
    assert shown(PIPELINE.format(decorator="@torch.no_grad()")) == []
