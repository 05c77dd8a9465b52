"""A backbone that is trained from the tenth step on: its optimizer state comes late."""

import torch
from torch import nn

backbone, head = nn.Linear(16, 32), nn.Linear(32, 4)
optimizer = torch.optim.AdamW([*backbone.parameters(), *head.parameters()])
backbone.requires_grad_(False)
for step in range(24):
    if step == 10:
        backbone.requires_grad_(True)
    optimizer.zero_grad()
    head(backbone(torch.randn(8, 16)).relu()).sum().backward()
    optimizer.step()
