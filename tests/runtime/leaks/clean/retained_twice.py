"""Two losses of one graph, with retain_graph, and a gradient penalty."""

import torch
from torch import nn
from torch.utils.data import DataLoader

critic = nn.Sequential(nn.Linear(5, 8), nn.Softplus(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(critic.parameters())
history = []
for epoch in range(2):
    for x in DataLoader(torch.randn(60, 5), batch_size=5):
        x = x.requires_grad_()
        out = critic(x)
        (slope,) = torch.autograd.grad(out.sum(), x, create_graph=True)
        optimizer.zero_grad()
        slope.norm(dim=1).sub(1).square().mean().backward(retain_graph=True)
        out.mean().backward()
        optimizer.step()
        history.append(out.mean().item())
    norms = []
    for x in DataLoader(torch.randn(40, 5), batch_size=5):
        x = x.requires_grad_()
        norms.append(torch.autograd.grad(critic(x).sum(), x)[0].norm())
    print(torch.stack(norms).mean())
