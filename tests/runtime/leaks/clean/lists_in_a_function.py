"""A function that collects numbers while it runs, and is called a few times."""

import torch

w = torch.randn(16, 16, requires_grad=True)
x = torch.randn(16, 16)


def chain():
    total = []
    for _ in range(20):
        total.append((x @ w).relu().sum().item())
    return sum(total)


for _ in range(3):
    print(chain())
