"""Who calls a method by its name, on a network whose class was not seen, says whether it should turn gradients off."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchmemlint.doubts import Doubt
from torchmemlint.flow.fact.cases import in_memory

from .findings import cases

NETS = """
import torch
from torch import nn


class Vocoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Conv1d(80, 1, 3)

    def forward(self, mel):
        return self.layer(mel)

    def inference(self, mel):
        return self.forward(mel)
"""
MAIN = """
import importlib

import torch


def load(name):
    return getattr(importlib.import_module(name.lower()), name)()


def main(name, mels):
    model = load(name)
    model.load_state_dict(torch.load(name))
    {body}
"""
GUARDED = "with torch.no_grad():\n        print(model.inference(mels))"
OPEN = "print(model.inference(mels))"
BOUND = "call = model.inference\n    print(call(mels))"
TRAINED = "model.inference(mels).sum().backward()"
OTHER = "print(torch.inference(mels))"
UNKNOWN = "print(mels.inference(model))"
HANDED_ON = "return model.inference(mels)"


def doubts(*bodies: str) -> list[set[Doubt]]:
    texts = {f"main{n}.py": MAIN.format(body=body) for n, body in enumerate(bodies)}
    found = cases({"nets.py": NETS, **texts})
    return [set(case.doubts) | ({Doubt.UNMADE} if case.unmade else set()) for case in found if case.file == "nets.py"]


@pytest.mark.parametrize("bodies", [(OPEN,), (OPEN, GUARDED), (OPEN, UNKNOWN)])
def test_a_caller_that_leaves_gradients_on(bodies: tuple[str, ...]) -> None:
    assert doubts(*bodies) == [{Doubt.BY_NAME}]


@pytest.mark.parametrize("bodies", [(GUARDED,), (GUARDED, GUARDED)])
def test_only_callers_that_turn_them_off(bodies: tuple[str, ...]) -> None:
    assert doubts(*bodies) == []


@pytest.mark.parametrize(
    "bodies", [(), (OTHER,), (UNKNOWN,), (GUARDED, UNKNOWN), (TRAINED,), (OPEN, TRAINED), (HANDED_ON,)]
)
def test_callers_that_say_nothing_of_it(bodies: tuple[str, ...]) -> None:
    (found,) = doubts(*bodies)
    assert Doubt.ROLE in found


def test_a_method_that_was_bound_before() -> None:
    assert doubts(BOUND, OPEN) == [{Doubt.BY_NAME}]


def test_a_caller_that_changes() -> None:
    root = Path("/project")
    texts = {root / "nets.py": NETS, root / "main.py": MAIN.format(body=GUARDED)}
    project = in_memory(texts, root)
    assert project.of(root / "nets.py") == []
    for body, wanted in ((OPEN, [{Doubt.BY_NAME}]), (GUARDED, []), (OTHER, [{Doubt.ROLE}])):
        texts[root / "main.py"] = MAIN.format(body=body)
        project.changed(root / "main.py", texts[root / "main.py"])
        assert [set(case.doubts) for case in project.of(root / "nets.py")] == wanted
        assert root / "main.py" in {file for one in project.basis(root / "nets.py") for file in one.files}


FLOW = """
import torch
from torch import nn


class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(80, 80)
        self.gate = nn.Linear(80, 1)

    def forward(self, x):
        return self.layer(x), self.gate(x)

    def infer(self, x):
        outputs = []
        for frame in x:
            outputs.append(self.layer(frame))
            if torch.sigmoid(self.gate(frame)).item() > 0.5:
                break
        return outputs

    def error(self, x):
        outputs = self.infer(x)
        return len(outputs) - len(x)
"""
SYNTHESIS = """
import torch
from flow import Flow

model = Flow()
model.load_state_dict(torch.load("flow.pt"))
with torch.no_grad():
    model.infer(torch.ones(9, 80))
"""


def test_what_nothing_calls_leads_to_a_pass_that_programs_run_without_gradients() -> None:
    """A network's check of itself is called by nobody, and whoever does so may turn gradients off."""
    found = cases({"flow.py": FLOW, "synthesis.py": SYNTHESIS})
    assert {Doubt.UNDIFFERENTIATED in case.doubts for case in found if case.code == "TML201"} == {True}
    open_too = SYNTHESIS + "model.infer(torch.ones(9, 80))\n"
    told = [case for case in cases({"flow.py": FLOW, "synthesis.py": open_too}) if case.code == "TML201"]
    assert not any(Doubt.UNDIFFERENTIATED in case.doubts for case in told)


COMPILED = """
import torch
from torch import nn


class Agent(torch.jit.ScriptModule):
    def __init__(self, size):
        super().__init__()
        self.net = nn.Linear(size, size)

    @torch.jit.script_method
    def act(self, obs):
        return {"action": self.net(obs).argmax(1).cpu()}
"""


def test_a_method_that_is_compiled_for_callers_in_other_languages() -> None:
    plain = COMPILED.replace("    @torch.jit.script_method\n", "")
    told = [[Doubt.UNCALLED in case.doubts for case in cases({"agent.py": text})] for text in (COMPILED, plain)]
    assert told == [[True], [False]]


BASE = """
class Scorer:
    def score(self, texts):
        raise NotImplementedError

    def score_templates(self, templates):
        return self.score([str(one) for one in templates])
"""
SCORER = """
import torch
from base import Scorer
from registry import register
from transformers import AutoModelForCausalLM


@register("language")
class Language(Scorer):
    def __init__(self, path):
        self.model = AutoModelForCausalLM.from_pretrained(path)
        self.model.eval()

    def score(self, texts):
        return self.model(torch.tensor(texts))[0].sum(-1).detach().numpy()
"""
REGISTRY = """
KNOWN = {}


def register(name):
    def keep(cls):
        KNOWN[name] = cls
        return cls

    return keep


def build(settings):
    return KNOWN[settings["type"]](**settings)
"""
EVALUATION = """
import torch
from registry import build


class Evaluation:
    def __init__(self, settings):
        self.model = build(settings)

    def run(self, batches):
        for batch in batches:
            {body}
"""
QUIET = "with torch.no_grad():\n                print(self.model.score_templates(batch))"
LOUD = "print(self.model.score_templates(batch))"


@pytest.mark.parametrize(("body", "found"), [(QUIET, []), (LOUD, ["scorer.py"])])
def test_a_method_that_leads_to_a_network_is_called_by_its_name(body: str, found: list[str]) -> None:
    texts = {"base.py": BASE, "scorer.py": SCORER, "registry.py": REGISTRY}
    assert [case.file for case in cases({**texts, "run.py": EVALUATION.format(body=body)})] == found


QUIET_NETS = """
import torch
from torch import nn

FEW = torch.cuda.device_count() < 2


def quietly(function):
    return (torch.no_grad if FEW else torch.inference_mode)()(function)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    {how}
    def forward(self, x):
        return self.layer(x)
"""
RUNNER = """
class Runner:
    def __init__(self, net):
        self.net = net.eval()

    def run(self, batches):
        for batch in batches:
            print(self.net(batch).argmax(-1).tolist())
"""
START = """
from nets import Net
from runner import Runner


def start(batches):
    Runner(Net()).run(batches)
"""


@pytest.mark.parametrize(("how", "found"), [("@quietly", []), ("", ["runner.py"])])
def test_a_decorator_of_another_file_turns_gradients_off(how: str, found: list[str]) -> None:
    texts = {"nets.py": QUIET_NETS.format(how=how), "runner.py": RUNNER, "start.py": START}
    assert [case.file for case in cases(texts)] == found


FAMILY = """
import torch
from torch import nn


class Matcher(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(x)

    def infer(self, x):
        return self.head(x)


class OfFrozen(Matcher):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder.eval()

    def infer(self, x):
        return self.head(self.encoder(x))


class Plain(Matcher):
    def infer(self, x):
        return self.head(x).softmax(1)
"""
TRAINING = """
from nets import {cls}


def train(batches):
    net = {cls}({given})
    for batch in batches:
        {body}
"""
LEARNS = "net.infer(batch).sum().backward()"
OWN = "net(batch).sum().backward()"


@pytest.mark.parametrize(("cls", "given"), [("Matcher", ""), ("Plain", "")])
@pytest.mark.parametrize(("body", "found"), [(LEARNS, set()), (OWN, {24})])
def test_a_method_that_is_called_through_its_base_classes(cls: str, given: str, body: str, found: set[int]) -> None:
    """What trains one class by a method trains those that override it, and those that override the same one."""
    texts = {"nets.py": FAMILY, "train.py": TRAINING.format(cls=cls, given=given, body=body)}
    told = {case.line for case in cases(texts) if case.file == "nets.py" and Doubt.EVALUATED in case.doubts}
    assert told == found
