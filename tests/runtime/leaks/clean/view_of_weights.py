"""A view without gradients of what gets some later is kept: torch does not let anybody ask for its graph."""

import torch
from torch import nn

model = nn.Linear(16, 16)
scaled = model.weight * 2
with torch.no_grad():
    first_row = scaled[0]
scaled.mul_(3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(30):
    loss = model(torch.randn(8, 16)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item(), first_row.shape)
