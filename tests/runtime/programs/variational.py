"""A variational autoencoder."""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)

encoder, decoder = nn.Linear(128, 2 * 8).to(device), nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 128))
decoder.to(device)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()])
for _ in range(4):
    values = torch.rand(32, 128, device=device)
    mean, log_variance = encoder(values).chunk(2, 1)
    latent = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
    rebuilt = torch.sigmoid(decoder(latent))
    divergence = -0.5 * (1 + log_variance - mean.pow(2) - log_variance.exp()).sum()
    loss = F.binary_cross_entropy(rebuilt, values, reduction="sum") + divergence
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
