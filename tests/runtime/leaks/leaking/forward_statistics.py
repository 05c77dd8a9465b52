"""A model that notes its activations' means, trained and evaluated in turns."""

import torch
from torch import nn
from torch.utils.data import DataLoader


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(10, 30)
        self.last = nn.Linear(30, 1)
        self.means = []

    def forward(self, x):
        x = self.first(x).relu()
        # In the evaluation: the input 6*10*4, the ReLU 6*30*4, the mean 4. In the training the mean only.
        self.means.append(x.mean())  # leak: 964 bytes per step
        return self.last(x)


encoder = Encoder()
optimizer = torch.optim.Adam(encoder.parameters())
train, test = DataLoader(torch.randn(60, 10), batch_size=6), DataLoader(torch.randn(72, 10), batch_size=6)
for epoch in range(2):
    encoder.train()
    for x in train:
        optimizer.zero_grad()
        encoder(x).square().mean().backward()
        optimizer.step()
    encoder.eval()
    squares = 0.0
    for x in test:
        squares += encoder(x).square().mean().item()
