"""A function that is called a few times, and whose sum grows while it runs."""

import torch

w = torch.randn(16, 16, requires_grad=True)
x = torch.randn(16, 16)


def chain():
    total = 0
    for _ in range(20):
        total = total + (x @ w).relu().sum()  # leak: 1_024 bytes per step
    return float(total)


for _ in range(3):
    print(chain())
