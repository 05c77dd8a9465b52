"""The same as `optimizers_of_stages` of the leaking ones, without the leak."""

import torch
from torch import nn


model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 8))
opts = []
for stage in range(14):
    opt = torch.optim.Adam(model.parameters())
    for i in range(3):
        loss = model(torch.randn(4, 64)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
