"""REINFORCE over episodes; every episode's log-probabilities go to a buffer that is never emptied."""

import torch
from torch import nn


class Buffer:
    def __init__(self):
        self.episodes = []

    def store(self, steps):
        self.episodes.append(steps)  # leak: 60 bytes per step


def play(policy):
    state, steps = torch.zeros(4), []
    for _ in range(15):
        distribution = torch.distributions.Categorical(logits=policy(state))
        action = distribution.sample()
        steps.append(distribution.log_prob(action))
        state = torch.randn(4)
    return steps


policy = nn.Linear(4, 2)
optimizer = torch.optim.Adam(policy.parameters())
buffer = Buffer()
for episode in range(20):
    steps = play(policy)
    loss = -torch.stack(steps).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    buffer.store(steps)
