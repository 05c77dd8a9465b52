"""A small GAN; the discriminator's answers are kept for a plot."""

import torch
from torch import nn

G = nn.Sequential(nn.Linear(5, 24), nn.ReLU(), nn.Linear(24, 7))
D = nn.Sequential(nn.Linear(7, 24), nn.LeakyReLU(0.2), nn.Linear(24, 1))
opt_g = torch.optim.Adam(G.parameters(), lr=2e-4)
opt_d = torch.optim.Adam(D.parameters(), lr=2e-4)
bce = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(16, 1), torch.zeros(16, 1)
log = {"real": [], "fake": []}

for step in range(25):
    real = torch.randn(16, 7)
    fake = G(torch.randn(16, 5))
    opt_d.zero_grad()
    d_real, d_fake = D(real), D(fake.detach())
    (bce(d_real, ones) + bce(d_fake, zeros)).backward()
    opt_d.step()

    opt_g.zero_grad()
    answer = D(fake)
    bce(answer, ones).backward()
    opt_g.step()
    log["real"].append(d_real.sigmoid().mean().item())
    # 16*1*4
    log["fake"].append(answer)  # leak: 64 bytes per step
