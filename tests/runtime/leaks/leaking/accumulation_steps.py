"""Gradient accumulation; the unscaled loss is summed for the progress bar."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = TensorDataset(torch.randn(160, 14), torch.randn(160, 14))
model = nn.Sequential(nn.Linear(14, 14), nn.Tanh(), nn.Linear(14, 14))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
shown, every = [], 4
for i, (x, y) in enumerate(DataLoader(data, batch_size=4)):
    out = model(x)
    loss = (out - y).square().mean()
    (loss / every).backward()
    if (i + 1) % every == 0:
        optimizer.step()
        optimizer.zero_grad()
    # A value that nobody asks the gradient of: the differences 4*14*4, the mean 4; a step has four batches.
    shown.append((out - out.mean()).square().mean())  # leak: 912 bytes per step
