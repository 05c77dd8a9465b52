"""Tokens routed to experts by masks."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)

gate, experts = nn.Linear(32, 4), nn.ModuleList([nn.Linear(32, 32) for _ in range(4)])
model = nn.ModuleList([gate, experts]).to(device)
optimizer = torch.optim.Adam(model.parameters())
for _ in range(4):
    tokens = torch.randn(64, 32, device=device)
    shares, chosen = gate(tokens).softmax(-1).max(-1)
    result = torch.zeros_like(tokens)
    for number, expert in enumerate(experts):
        rows = torch.where(chosen == number)[0]
        result = result.index_add(0, rows, expert(tokens[rows]) * shares[rows, None])
    loss = result.pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
