"""A generator and a discriminator."""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)

generator = nn.Sequential(nn.Linear(16, 128), nn.ReLU(), nn.Linear(128, 256), nn.Tanh()).to(device)
discriminator = nn.Sequential(nn.Linear(256, 128), nn.LeakyReLU(0.2), nn.Linear(128, 1)).to(device)
first = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
second = torch.optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
for _ in range(4):
    real = torch.randn(32, 256, device=device)
    fake = generator(torch.randn(32, 16, device=device))
    ones, zeros = torch.ones(32, 1, device=device), torch.zeros(32, 1, device=device)
    loss = F.binary_cross_entropy_with_logits(discriminator(real), ones)
    loss = loss + F.binary_cross_entropy_with_logits(discriminator(fake.detach()), zeros)
    second.zero_grad()
    loss.backward()
    second.step()
    wanted = F.binary_cross_entropy_with_logits(discriminator(fake), ones)
    first.zero_grad()
    wanted.backward()
    first.step()
print("loss", loss.item(), wanted.item())
