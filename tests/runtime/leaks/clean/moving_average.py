"""Averages of weights and of the loss, detached, made anew with each step."""

import copy

import torch
from torch import nn

model = nn.Linear(16, 8)
average = copy.deepcopy(model).requires_grad_(False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
smoothed = torch.zeros(())
for step in range(24):
    loss = model(torch.randn(8, 16)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    smoothed = 0.9 * smoothed + 0.1 * loss.detach()
    with torch.no_grad():
        for ours, theirs in zip(average.parameters(), model.parameters()):
            ours.copy_(ours * 0.99 + theirs * 0.01)
