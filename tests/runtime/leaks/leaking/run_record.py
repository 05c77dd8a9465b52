"""Losses by sample in a dataclass."""

from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Run:
    name: str
    per_sample: list = field(default_factory=list)

    def hardest(self):
        return torch.stack(self.per_sample).max()


run = Run("baseline")
model = nn.Linear(8, 3)
optimizer = torch.optim.NAdam(model.parameters())
for step in range(20):
    target = torch.randint(0, 3, (16,))
    losses = F.cross_entropy(model(torch.randn(16, 8)), target, reduction="none")
    optimizer.zero_grad()
    losses.mean().backward()
    optimizer.step()
    run.per_sample.append(losses)  # leak: 64 bytes per step
