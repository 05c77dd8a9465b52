"""A search that keeps each trial's model, optimizer and last loss. 4,609 weights, with gradient and two states."""

import torch
from torch import nn


results = {}


def train(width):
    model = nn.Sequential(nn.Linear(16, width), nn.ReLU(), nn.Linear(width, 1))
    opt = torch.optim.Adam(model.parameters())
    for i in range(4):
        loss = model(torch.randn(8, 16)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return model, opt, loss


for trial in range(12):
    model, opt, loss = train(256)
    results[trial] = model, opt, loss  # leak: 73764 bytes per step
