"""The last outputs, in a deque that has its size."""

from collections import deque

import torch
from torch import nn

model = nn.Linear(16, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
recent = deque(maxlen=5)
for step in range(24):
    output = model(torch.randn(8, 16))
    optimizer.zero_grad()
    output.sum().backward()
    optimizer.step()
    recent.append(output)
