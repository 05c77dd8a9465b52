"""A new optimizer for every epoch, and a list of all of them for their learning rates."""

import torch
from torch import nn

net = nn.Linear(16, 8)
optimizers = []
for epoch in range(12):
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3 / (1 + epoch))
    # two averages of (16*8 + 8) floats, and two counts of steps
    optimizers.append(optimizer)  # leak: 1096 bytes per step
    for _ in range(4):
        optimizer.zero_grad()
        net(torch.randn(4, 16)).mean().backward()
        optimizer.step()
print([one.param_groups[0]["lr"] for one in optimizers])
