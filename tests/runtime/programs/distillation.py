"""A small model that learns from a large one."""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)

teacher = nn.Sequential(nn.Linear(32, 512), nn.ReLU(), nn.Linear(512, 10)).to(device).eval()
student = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 10)).to(device)
optimizer = torch.optim.Adam(student.parameters())
for _ in range(4):
    values = torch.randn(64, 32, device=device)
    with torch.no_grad():
        wanted = (teacher(values) / 2).softmax(-1)
    loss = F.kl_div((student(values) / 2).log_softmax(-1), wanted, reduction="batchmean")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
