"""A graph's adjacency as a sparse matrix."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)

weights = nn.Linear(32, 32).to(device)
optimizer = torch.optim.SGD(weights.parameters(), lr=0.1)
indices = torch.randint(0, 100, (2, 400), device=device)
adjacency = torch.sparse_coo_tensor(indices, torch.ones(400, device=device), (100, 100)).coalesce()
nodes = torch.randn(100, 32, device=device)
for _ in range(4):
    loss = torch.sparse.mm(adjacency, weights(nodes)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
