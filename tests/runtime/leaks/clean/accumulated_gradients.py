"""Gradients of four small batches before each step."""

import torch
from torch import nn

model = nn.Linear(16, 8)
optimizer = torch.optim.Adam(model.parameters())
losses = []
for step in range(48):
    loss = model(torch.randn(4, 16)).square().mean() / 4
    loss.backward()
    losses.append(loss.detach())
    if step % 4 == 3:
        optimizer.step()
        optimizer.zero_grad()
        print(torch.stack(losses).sum().item())
        losses = []
