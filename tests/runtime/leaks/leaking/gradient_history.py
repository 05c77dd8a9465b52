"""Gradients of every step, for a study of their noise."""

import torch
from torch import nn

model = nn.Linear(16, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
gradients = []
for step in range(20):
    optimizer.zero_grad(set_to_none=True)
    model(torch.randn(4, 16)).square().mean().backward()
    optimizer.step()
    # (16*8 + 8) * 4
    gradients.append([p.grad for p in model.parameters()])  # leak: 544 bytes per step
