"""Gradients of gradients."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)

critic = nn.Sequential(nn.Linear(32, 64), nn.Softplus(), nn.Linear(64, 1)).to(device)
optimizer = torch.optim.Adam(critic.parameters())
for _ in range(4):
    values = torch.randn(64, 32, device=device, requires_grad=True)
    scores = critic(values)
    (gradients,) = torch.autograd.grad(scores.sum(), values, create_graph=True)
    loss = scores.mean() + 10 * (gradients.norm(2, dim=1) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
