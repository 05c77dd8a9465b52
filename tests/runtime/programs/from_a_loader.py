"""Batches from a loader, moved to the device."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)

data = TensorDataset(torch.randn(64, 32), torch.randint(0, 4, (64,)))
model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 4)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for inputs, targets in DataLoader(data, batch_size=16, shuffle=True, pin_memory=device == "cuda"):
    inputs, targets = inputs.to(device, non_blocking=True), targets.to(device, non_blocking=True)
    loss = F.cross_entropy(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
