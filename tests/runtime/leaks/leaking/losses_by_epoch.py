"""Validation losses by epoch, as tensors with their graphs."""

import torch
from torch import nn

model = nn.Sequential(nn.Linear(12, 6), nn.Tanh())
epoch_losses = {}
for epoch in range(4):
    epoch_losses[epoch] = []
    for i in range(10):
        x = torch.randn(8, 12)
        loss = model(x).mean()
        # x 8*12*4, tanh 8*6*4, loss 4
        epoch_losses[epoch].append(loss)  # leak: 580 bytes per step
