"""Training with a validation after each epoch, whose results are never dropped."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Runner:
    def __init__(self):
        self.model = nn.Linear(6, 4)
        self.optimizer = torch.optim.Adam(self.model.parameters())
        self.train_loader = DataLoader(TensorDataset(torch.randn(24, 6), torch.randn(24, 4)), batch_size=8)
        self.val_loader = DataLoader(TensorDataset(torch.randn(24, 6), torch.randn(24, 4)), batch_size=8)
        self.val_results = []

    def train_epoch(self):
        for x, y in self.train_loader:
            self.optimizer.zero_grad()
            nn.functional.l1_loss(self.model(x), y).backward()
            self.optimizer.step()

    @torch.no_grad()
    def validate(self):
        for x, y in self.val_loader:
            pred = self.model(x)
            # 8*4*4 each
            self.val_results.append({"pred": pred, "target": y})  # leak: 256 bytes per step


runner = Runner()
for epoch in range(8):
    runner.train_epoch()
    runner.validate()
