"""Rows for a table, by +=."""

import torch
from torch import nn


def collect(model, loader):
    rows = []
    for x in loader:
        with torch.no_grad():
            y = model(x)
        rows += [x.mean(), *y]  # leak: 100 bytes per step
    return rows


# the mean, and three rows of one result of 3*8 floats
collect(nn.Linear(4, 8), (torch.randn(3, 4) for _ in range(20)))
