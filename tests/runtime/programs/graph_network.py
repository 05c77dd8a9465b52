"""Messages along the edges of a graph, summed by index_add."""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)


class Messages(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.own, self.other = nn.Linear(inputs, outputs), nn.Linear(inputs, outputs, bias=False)

    def forward(self, nodes, sources, targets):
        gathered = torch.zeros(len(nodes), nodes.shape[1], device=nodes.device)
        gathered = gathered.index_add(0, targets, nodes[sources])
        return self.own(nodes) + self.other(gathered)


first, second = Messages(16, 32).to(device), Messages(32, 4).to(device)
optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()])
nodes, labels = torch.randn(200, 16, device=device), torch.randint(0, 4, (200,), device=device)
sources, targets = torch.randint(0, 200, (2, 1000), device=device)
for _ in range(4):
    hidden = F.relu(first(nodes, sources, targets))
    loss = F.cross_entropy(second(hidden, sources, targets), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
