"""A frozen model with small matrices that learn."""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)


class LowRank(nn.Module):
    def __init__(self, base, rank):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Parameter(torch.randn(rank, base.in_features) * 0.01)
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, values):
        return self.base(values) + values @ self.down.t() @ self.up.t()


model = nn.Sequential(LowRank(nn.Linear(128, 256), 4), nn.ReLU(), LowRank(nn.Linear(256, 10), 4)).to(device)
optimizer = torch.optim.AdamW([one for one in model.parameters() if one.requires_grad])
for _ in range(4):
    loss = F.cross_entropy(model(torch.randn(32, 128, device=device)), torch.randint(0, 10, (32,), device=device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
