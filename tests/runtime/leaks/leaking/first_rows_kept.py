"""Keeps the first row of every result, and with it the whole storage: a row is a view."""

import torch
from torch import nn


@torch.no_grad()
def first_rows(model, batches):
    rows = []
    for batch in batches:
        rows.append(model(batch)[0])  # leak: 1024 bytes per step
    return torch.stack(rows)


print(first_rows(nn.Linear(4, 16), [torch.ones(16, 4) for _ in range(20)]).shape)
