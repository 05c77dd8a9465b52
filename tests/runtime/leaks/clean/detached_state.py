"""Truncated backpropagation through time."""

import torch
from torch import nn

cell, head = nn.GRUCell(8, 16), nn.Linear(16, 1)
optimizer = torch.optim.Adam([*cell.parameters(), *head.parameters()])
h = torch.zeros(4, 16)
for chunk in range(20):
    loss = 0
    for t in range(5):
        h = cell(torch.randn(4, 8), h)
        loss = loss + head(h).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    h = h.detach()
