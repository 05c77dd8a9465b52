"""Two threads that train a model each, and keep numbers only."""

import threading

import torch
from torch import nn


def learn(losses):
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(30):
        loss = (model(torch.randn(8, 16)) - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())


kept = [[], []]
workers = [threading.Thread(target=learn, args=(losses,)) for losses in kept]
for worker in workers:
    worker.start()
for worker in workers:
    worker.join()
print([losses[-1] for losses in kept])
