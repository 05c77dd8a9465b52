"""One backward per epoch over the losses of all of its batches; a prediction at the end."""

import torch
from torch import nn
from torch.utils.data import DataLoader

data = torch.randn(48, 6)
model = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(8):
    losses = []
    for batch in DataLoader(data, batch_size=6):
        losses.append(model(batch).square().mean())
    optimizer.zero_grad()
    torch.stack(losses).mean().backward()
    optimizer.step()

def predict():
    rows = []
    with torch.no_grad():
        for batch in DataLoader(data, batch_size=4):
            rows.append(model(batch))
    return torch.cat(rows).mean().item()


print(predict())
