"""Keeps the batches to look at the worst afterwards."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

dataset = TensorDataset(torch.randn(160, 16), torch.randint(0, 5, (160,)))
model = nn.Linear(16, 5)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

seen = []
for inputs, labels in DataLoader(dataset, batch_size=8, shuffle=True):
    loss = F.cross_entropy(model(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    # 8*16*4 and 8 labels of 8 bytes
    seen.append((loss.item(), inputs, labels))  # leak: 576 bytes per step
seen.sort(key=lambda row: row[0])
