"""What is doubted is no finding where the doubts were nearly always right."""

from __future__ import annotations

import pytest

from torchmemlint import check_source

KEPT_METHODS = """
import torch
from judges import Judge


class Listener(Judge):
    def __init__(self, options, nets):
        super().__init__(options)
        self.nets = nets
        self.nets.eval()
        self.choose({"codes": self.from_codes}, options.kind)

    def from_codes(self, sound):
        return self.nets["codes"](sound).argmax(-1).tolist()

    def judge(self, sounds):
        with torch.no_grad():
            return [self.way(sound) for sound in sounds]
"""
WEIGHED = """
import torch
from torch import nn


class WeighedLoss(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.critic = nn.Conv2d(3, width, 3)

    def forward(self, images, made, turn, last):
        if turn == 0:
            opinion = -self.critic(made).mean()
            grad = torch.autograd.grad(opinion, last, retain_graph=True)[0]
            loss = (made - images).abs().mean() + opinion / (grad.norm().detach() + 1e-4)
            return loss
        return torch.relu(1.0 - self.critic(images.detach())).mean()
"""


@pytest.mark.parametrize("program", [KEPT_METHODS, WEIGHED])
def test_a_guess_is_not_told(program: str) -> None:
    assert check_source(program, settings={"confidence": "possible", "select": ["TML1", "TML2"]}) == []


ACTING = """
import torch


class Player:
    def __init__(self, learner):
        self.learner = learner

    def {name}(self, observation):
        action, _ = self.learner.actor(torch.as_tensor(observation, device="cuda"))
        return action.detach().cpu().numpy()
"""


@pytest.mark.parametrize("name", ["choose", "predict"])
def test_a_method_whose_result_is_detached_for_an_array_may_run_a_network(name: str) -> None:
    settings = {"confidence": "possible", "select": ["TML2"]}
    (found,) = check_source(ACTING.format(name=name), settings=settings)
    assert (found.code, found.confidence.value) == ("TML203", "possible")
    assert check_source(ACTING.format(name=name), settings={"select": ["TML2"]}) == []


LAYERS_OF_EACH_CALL = """
import torch


class Extractor:
    def __init__(self, encoder, layers):
        self.encoder, self.outputs = encoder, []
        modules = dict(encoder.named_modules())
        for name in layers:
            modules[name].register_forward_hook(self.keep)

    def keep(self, module, inputs, output):
        self.outputs = output.detach()


def features(encoder, layers, image):
    extractor = Extractor(encoder, layers)
    with torch.no_grad():
        encoder(image)
    return extractor.outputs
"""
ONE_OF_EACH_CALL = """
import torch


def attention(encoder, image):
    seen = {}
    for name, module in encoder.named_modules():
        if name == "layer4":
            module.register_forward_hook(lambda _, __, output: seen.update(a=output.detach()))
    with torch.no_grad():
        encoder(image)
    return seen["a"]
"""
ON_DEMAND = """
import torch


def attention(encoder, image, first):
    seen = {}
    if first:
        for module in encoder.modules():
            module.register_forward_hook(lambda _, __, output: seen.update(a=output.detach()))
    with torch.no_grad():
        encoder(image)
    return seen
"""


@pytest.mark.parametrize(("program", "found"), [(LAYERS_OF_EACH_CALL, 1), (ONE_OF_EACH_CALL, 1), (ON_DEMAND, 0)])
def test_a_function_that_hooks_layers_and_runs_the_network_may_do_so_each_time(program: str, found: int) -> None:
    assert len(check_source(program, settings={"confidence": "possible", "select": ["TML802"]})) == found
    assert check_source(program, settings={"select": ["TML802"]}) == []
