"""Dropout between layers."""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)

model = nn.Sequential(
    nn.Linear(64, 256), nn.ReLU(), nn.Dropout(0.2), nn.Linear(256, 256), nn.Dropout(0.5), nn.Linear(256, 8)
)
model.to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    loss = F.cross_entropy(model(torch.randn(128, 64, device=device)), torch.randint(0, 8, (128,), device=device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
