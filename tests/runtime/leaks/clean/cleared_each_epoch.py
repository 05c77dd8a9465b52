"""Outputs of an epoch, dropped at its end."""

import torch
from torch import nn

model = nn.Linear(16, 8)
optimizer = torch.optim.Adam(model.parameters())
outputs = []
for epoch in range(4):
    for step in range(10):
        out = model(torch.randn(8, 16))
        optimizer.zero_grad()
        out.sum().backward()
        optimizer.step()
        outputs.append(out)
    print(torch.cat(outputs).mean().item())
    outputs.clear()
