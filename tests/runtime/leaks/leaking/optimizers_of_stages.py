"""A list of all stages' optimizers. 18,696 weights with two states each, and four counters."""

import torch
from torch import nn


model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 8))
opts = []
for stage in range(14):
    opt = torch.optim.Adam(model.parameters())
    opts.append(opt)  # leak: 149584 bytes per step
    for i in range(3):
        loss = model(torch.randn(4, 64)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
