"""A GAN that keeps its samples to make an animation of them."""

import torch
from torch import nn


def train(steps):
    G, D = nn.Linear(8, 64), nn.Linear(64, 1)
    opt_g = torch.optim.Adam(G.parameters(), lr=2e-4, betas=(0.5, 0.999))
    opt_d = torch.optim.Adam(D.parameters(), lr=2e-4, betas=(0.5, 0.999))
    bce = nn.BCEWithLogitsLoss()
    images = []
    for i in range(steps):
        real, fake = torch.randn(8, 64), G(torch.randn(8, 8))
        loss_d = bce(D(real), torch.ones(8, 1)) + bce(D(fake.detach()), torch.zeros(8, 1))
        opt_d.zero_grad()
        loss_d.backward()
        opt_d.step()
        loss_g = bce(D(fake), torch.ones(8, 1))
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()
        images.append(fake)  # leak: 2048 bytes per step
    return images


train(20)
