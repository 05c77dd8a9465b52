"""Keeps a copy of the weights of every step, to choose the best."""

import torch
from torch import nn

model = nn.Linear(32, 16)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
snapshots, scores = [], []
for step in range(18):
    loss = model(torch.randn(4, 32)).square().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scores.append(loss.item())
    # (32*16 + 16) * 4
    snapshots.append({k: v.clone() for k, v in model.state_dict().items()})  # leak: 2112 bytes per step
best = snapshots[scores.index(min(scores))]
