"""A denoising step, with a moving average of the weights."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)

model = nn.Sequential(nn.Conv2d(4, 32, 3, padding=1), nn.SiLU(), nn.Conv2d(32, 3, 3, padding=1)).to(device)
average = copy.deepcopy(model).requires_grad_(False)
optimizer = torch.optim.AdamW(model.parameters())
kept = torch.cumprod(1 - torch.linspace(1e-4, 0.02, 100, device=device), 0)
for _ in range(4):
    images = torch.randn(4, 3, 16, 16, device=device)
    times = torch.randint(0, 100, (4,), device=device)
    noise = torch.randn_like(images)
    share = kept[times].view(-1, 1, 1, 1)
    noisy = share.sqrt() * images + (1 - share).sqrt() * noise
    when = (times / 100).view(-1, 1, 1, 1).expand(-1, 1, 16, 16)
    loss = F.mse_loss(model(torch.cat([noisy, when], 1)), noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for slow, fast in zip(average.parameters(), model.parameters()):
            slow.lerp_(fast, 0.01)
print("loss", loss.item())
