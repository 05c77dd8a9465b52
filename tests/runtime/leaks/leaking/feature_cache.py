"""Caches features by the sample's id; every sample is seen once."""

import torch
from torch import nn


class CachedEncoder:
    def __init__(self):
        self.encoder = nn.Sequential(nn.Linear(24, 16), nn.Sigmoid())
        self._cache = {}

    def __call__(self, sample_id, x):
        if sample_id not in self._cache:
            self._cache[sample_id] = self.encoder(x)  # leak: 640 bytes per step
        return self._cache[sample_id]


def stream(n):
    for i in range(n):
        yield f"sample-{i}", torch.randn(4, 24)


encode = CachedEncoder()
for sample_id, x in stream(20):
    encode(sample_id, x).sum()  # x 4*24*4, sigmoid 4*16*4
