"""Bags of embeddings."""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)

bags, items = nn.EmbeddingBag(500, 32, mode="mean"), nn.Embedding(200, 32)
model = nn.ModuleList([bags, items]).to(device)
optimizer = torch.optim.Adam(model.parameters())
for _ in range(4):
    seen, starts = torch.randint(0, 500, (60,), device=device), torch.arange(0, 60, 6, device=device)
    wanted = torch.randint(0, 200, (10,), device=device)
    scores = bags(seen, starts) @ items.weight.t()
    loss = F.cross_entropy(scores, wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
