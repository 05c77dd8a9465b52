"""Results of a validation, kept for its duration."""

import torch
from torch import nn

model = nn.Linear(16, 4)
optimizer = torch.optim.Adam(model.parameters())


@torch.no_grad()
def validate():
    predictions = []
    for _ in range(9):
        predictions.append(model(torch.randn(8, 16)))
    return torch.cat(predictions).std().item()


for epoch in range(6):
    for _ in range(6):
        optimizer.zero_grad()
        model(torch.randn(8, 16)).sum().backward()
        optimizer.step()
    print(validate())
