"""A learner that trains in a thread of its own, while the main one waits for it."""

import threading

import torch
from torch import nn


def learn(model, optimizer, history):
    for _ in range(30):
        x = torch.randn(8, 16)
        loss = (model(x) - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(x)  # leak: 512 bytes per step


model = nn.Linear(16, 1)
seen = []
worker = threading.Thread(target=learn, args=(model, torch.optim.SGD(model.parameters(), lr=0.1), seen))
worker.start()
worker.join()
print(len(seen))
