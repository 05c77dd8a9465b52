"""A curriculum: sequences grow from step to step, and nothing is kept."""

import torch
from torch import nn

model = nn.GRU(8, 8, batch_first=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for length in range(4, 64, 2):
    x = torch.randn(2, length, 8)
    out, h = model(x)
    loss = out.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
