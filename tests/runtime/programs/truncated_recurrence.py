"""A GRU cell through time, its state detached every few steps."""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)

cell, head = nn.GRUCell(16, 64).to(device), nn.Linear(64, 16).to(device)
optimizer = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.01)
state = torch.zeros(8, 64, device=device)
for _ in range(4):
    loss = torch.zeros((), device=device)
    for _ in range(5):
        values = torch.randn(8, 16, device=device)
        state = cell(values, state)
        loss = loss + F.mse_loss(head(state), values)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    state = state.detach()
print("loss", loss.item())
