"""Gradients of several small batches, one step."""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)

model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 64)).to(device)
optimizer = torch.optim.Adagrad(model.parameters())
total = 0.0
for number in range(12):
    values = torch.randn(32, 64, device=device)
    loss = F.mse_loss(model(values), values) / 4
    loss.backward()
    total += loss.item()
    if number % 4 == 3:
        optimizer.step()
        optimizer.zero_grad()
print("loss", total)
