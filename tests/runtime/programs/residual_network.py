"""Residual blocks, AdamW, a learning rate that falls, gradients clipped."""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.second = nn.Conv2d(width, width, 3, padding=1), nn.Conv2d(width, width, 3, padding=1)
        self.norm = nn.GroupNorm(4, width)

    def forward(self, values):
        return F.relu(values + self.second(F.relu(self.norm(self.first(values)))))


model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), Residual(16), Residual(16), nn.Flatten(), nn.Linear(4096, 5))
model = model.to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4)
for _ in range(4):
    images, labels = torch.randn(4, 3, 16, 16, device=device), torch.randint(0, 5, (4,), device=device)
    optimizer.zero_grad()
    F.cross_entropy(model(images), labels).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
print("rate", scheduler.get_last_lr())
