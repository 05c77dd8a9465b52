"""A model and a data set that are built in loops, and then trained."""

import torch
from torch import nn

layers = []
for _ in range(12):
    layers.append(nn.Linear(8, 8))
    layers.append(nn.ReLU())
model = nn.Sequential(*layers)
data = []
for _ in range(20):
    data.append(torch.randn(4, 8))
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(2):
    for x in data:
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
