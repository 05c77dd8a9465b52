"""Early stopping that keeps the weights of every epoch, to go back to the best."""

import copy

import torch
from torch import nn
from torch.utils.data import DataLoader


class EarlyStopping:
    def __init__(self, patience):
        self.patience, self.history = patience, []

    def update(self, score, model):
        # 6*2*4 + 2*4
        self.history.append((score, copy.deepcopy(model.state_dict())))  # leak: 56 bytes per step
        best = max(range(len(self.history)), key=lambda i: self.history[i][0])
        return len(self.history) - best > self.patience


def validate(model, loader):
    with torch.no_grad():
        return -sum(model(x).square().mean().item() for x in loader)


model = nn.Linear(6, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
train, val = DataLoader(torch.randn(40, 6), batch_size=5), DataLoader(torch.randn(20, 6), batch_size=5)
stopping = EarlyStopping(patience=50)
for epoch in range(12):
    for x in train:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
    if stopping.update(validate(model, val), model):
        break
