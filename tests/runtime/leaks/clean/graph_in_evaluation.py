"""An evaluation that records graphs, keeps numbers and detached outputs only, and decodes step by step."""

import torch
from torch import nn
from torch.utils.data import DataLoader


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.GRUCell(5, 5), nn.Linear(5, 5)

    def forward(self, x):
        state, out = x, x
        for _ in range(2):
            state = self.cell(out, state)
            out = self.head(state)
        return out


def generate(model, start):
    tokens = start
    for _ in range(8):
        tokens = torch.cat([tokens, model(tokens[-4:])[-1:]])
    return tokens


def evaluate(model, loader):
    worst, outputs = 0.0, []
    for x in loader:
        out = model(x)
        worst = max(worst, float(out.abs().max()))
        outputs.append(out.detach())
        generate(model, x)
    return worst, torch.cat(outputs).std().item()


model = Decoder()
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(2):
    for x in DataLoader(torch.randn(40, 5), batch_size=4):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    print(evaluate(model, DataLoader(torch.randn(36, 5), batch_size=4)))
