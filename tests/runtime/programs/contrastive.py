"""Two views of each image, pulled together."""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)

model = nn.Sequential(nn.Linear(96, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 32)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for _ in range(4):
    images = torch.randn(32, 96, device=device)
    views = torch.cat([images + 0.1 * torch.randn_like(images), images * 1.1])
    codes = F.normalize(model(views), dim=1)
    similar = codes @ codes.t() / 0.1
    similar.fill_diagonal_(float("-inf"))
    targets = torch.arange(64, device=device).roll(32)
    loss = F.cross_entropy(similar, targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
