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
