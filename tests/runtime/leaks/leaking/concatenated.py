"""All predictions in one tensor, made anew with each batch."""

import torch
from torch import nn

model = nn.Linear(10, 4)
all_preds = torch.empty(0, 4)
with torch.no_grad():
    for step in range(24):
        preds = model(torch.randn(8, 10)).softmax(dim=1)
        all_preds = torch.cat([all_preds, preds])  # leak: 128 bytes per step
print(all_preds.mean(0))
