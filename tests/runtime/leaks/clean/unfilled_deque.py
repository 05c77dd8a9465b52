"""A deque whose size this run does not reach."""

from collections import deque

import torch
from torch import nn

model = nn.Linear(16, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
recent = deque(maxlen=100)
for step in range(24):
    output = model(torch.randn(8, 16))
    optimizer.zero_grad()
    output.sum().backward()
    optimizer.step()
    recent.append(output.detach())
