"""A rollout that goes on over all updates."""

from typing import NamedTuple

import torch
from torch import nn


class Step(NamedTuple):
    observation: torch.Tensor
    log_prob: torch.Tensor
    value: torch.Tensor


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(6, 10)
        self.policy = nn.Linear(10, 2)
        self.value = nn.Linear(10, 1)

    def forward(self, x):
        x = torch.tanh(self.body(x))
        return self.policy(x).log_softmax(-1), self.value(x)


agent = Agent()
rollout = []
observation = torch.zeros(1, 6)
for frame in range(40):
    log_probs, value = agent(observation)
    action = int(log_probs.argmax())
    # observation 6*4, tanh 10*4, log-softmax 2*4, value 4
    rollout.append(Step(observation, log_probs[0, action], value))  # leak: 76 bytes per step
    observation = torch.randn(1, 6)
