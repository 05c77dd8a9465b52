"""Attention written out, with a mask that is a buffer."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)


class Attention(nn.Module):
    def __init__(self, width, length):
        super().__init__()
        self.project = nn.Linear(width, 3 * width)
        self.register_buffer("mask", torch.tril(torch.ones(length, length, dtype=torch.bool)))

    def forward(self, values):
        query, key, value = self.project(values).chunk(3, -1)
        scores = query @ key.transpose(1, 2) / query.shape[-1] ** 0.5
        scores = scores.masked_fill(~self.mask, float("-inf"))
        return values + torch.softmax(scores, -1) @ value


model = nn.Sequential(Attention(32, 64), Attention(32, 64), nn.Linear(32, 8)).to(device)
optimizer = torch.optim.RMSprop(model.parameters())
for _ in range(4):
    values = torch.randn(4, 64, 32, device=device)
    loss = model(values).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
