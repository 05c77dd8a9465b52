"""Patches of images, torch's multi-head attention."""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)


class Vision(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 48, 8, stride=8)
        self.place = nn.Parameter(torch.zeros(1, 17, 48))
        self.token = nn.Parameter(torch.zeros(1, 1, 48))
        self.norm, self.attention = nn.LayerNorm(48), nn.MultiheadAttention(48, 4, batch_first=True)
        self.head = nn.Linear(48, 10)

    def forward(self, images):
        values = self.patches(images).flatten(2).transpose(1, 2)
        values = torch.cat([self.token.expand(len(values), -1, -1), values], 1) + self.place
        normed = self.norm(values)
        values = values + self.attention(normed, normed, normed, need_weights=False)[0]
        return self.head(values[:, 0])


model = Vision().to(device)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(4):
    loss = F.cross_entropy(model(torch.randn(4, 3, 32, 32, device=device)), torch.randint(0, 10, (4,), device=device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
