"""A default argument that is made once."""

import torch
from torch import nn


def smooth(loss, window=[]):
    window.append(loss)  # leak: 4 bytes per step
    return sum(window[-10:]) / len(window[-10:])


net = nn.Linear(5, 5)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(30):
    loss = net(torch.randn(3, 5)).abs().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 10 == 9:
        print(smooth(loss).item())
    else:
        smooth(loss)
