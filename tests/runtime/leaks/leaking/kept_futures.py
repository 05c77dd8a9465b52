"""Scores from a pool of one thread: the futures keep them."""

from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn


model = nn.Linear(64, 512)
pool = ThreadPoolExecutor(1)


def score(x):
    with torch.no_grad():
        return model(x)


futures = []
for i in range(24):
    future = pool.submit(score, torch.randn(32, 64))
    futures.append(future)  # leak: 65536 bytes per step
    print(future.result().mean().item())
pool.shutdown()
