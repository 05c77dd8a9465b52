"""Activations computed again in backward."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)

blocks = nn.ModuleList([nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64)) for _ in range(4)]).to(device)
optimizer = torch.optim.Adam(blocks.parameters())
for _ in range(4):
    values = torch.randn(64, 64, device=device)
    for number, block in enumerate(blocks):
        values = values + (checkpoint(block, values, use_reentrant=False) if number else block(values))
    loss = values.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
