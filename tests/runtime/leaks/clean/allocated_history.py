"""A history of detached figures, made at the start."""

import torch
from torch import nn

steps = 24
history = torch.zeros(steps)
floats = []
model = nn.Linear(16, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(steps):
    loss = model(torch.randn(8, 16)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    history[step] = loss.detach()
    floats.append(loss.item())
