"""Collects the results of an evaluation, without graphs, and uses them when it is over."""

import torch
from torch import nn


@torch.no_grad()
def features(model, batches):
    found = []
    for batch in batches:
        found.append(model(batch))
    return torch.cat(found)


print(features(nn.Linear(4, 16), [torch.ones(16, 4) for _ in range(20)]).shape)
