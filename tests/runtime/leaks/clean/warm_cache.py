"""Masks by length: after a few steps all lengths are known."""

import torch
from torch import nn

masks = {}


def causal_mask(n):
    if n not in masks:
        masks[n] = torch.full((n, n), float("-inf")).triu(1)
    return masks[n]


layer = nn.Linear(8, 8)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
for step in range(30):
    n = 4 + step * 5 % 7
    x = layer(torch.randn(2, n, 8))
    weights = (x @ x.transpose(1, 2) + causal_mask(n)).softmax(-1)
    optimizer.zero_grad()
    (weights @ x).sum().backward()
    optimizer.step()
