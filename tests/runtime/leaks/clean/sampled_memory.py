"""A memory of what was seen, without graphs; each step learns from some of it, chosen at random."""

import random

import torch
from torch import nn

random.seed(0)
model = nn.Linear(16, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
memory = []
for _ in range(20):
    for _ in range(4):
        memory.append(torch.randn(16))
    batch = torch.stack([random.choice(memory) for _ in range(4)])
    optimizer.zero_grad()
    model(batch).mean().backward()
    optimizer.step()
