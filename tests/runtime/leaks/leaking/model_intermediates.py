"""A model that remembers the outputs of its blocks, for a visualisation."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(32, 32) for _ in range(2))
        self.intermediates = []

    def forward(self, x):
        for block in self.blocks:
            x = torch.relu(block(x))
            self.intermediates.append(x)  # leak: 4096 bytes per step
        return x


net = Net()
optimizer = torch.optim.Adagrad(net.parameters(), lr=0.01)
for step in range(16):  # two of 16*32 floats
    optimizer.zero_grad()
    net(torch.randn(16, 32)).sum().backward()
    optimizer.step()
