"""Attention weights by step, on the module."""

import math

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)
        self.maps = {}
        self.calls = 0

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        weights = (q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])).softmax(-1)
        self.maps[self.calls] = weights  # leak: 512 bytes per step
        self.calls += 1
        return weights @ v


attention = Attention(16)
optimizer = torch.optim.AdamW(attention.parameters())
for _ in range(20):  # 2 * 8 * 8 floats
    loss = attention(torch.randn(2, 8, 16)).pow(2).mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
