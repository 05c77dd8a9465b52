"""Drops duplicate batches, and so keeps all of them."""

import torch
from torch import nn


def without_duplicates(batches):
    seen = []
    for batch in batches:
        if not any(torch.equal(batch, other) for other in seen):
            seen.append(batch)  # leak: 512 bytes per step
            yield batch


model = nn.Linear(16, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in without_duplicates(torch.randn(8, 16) for _ in range(20)):
    optimizer.zero_grad()
    model(batch).sum().backward()
    optimizer.step()
