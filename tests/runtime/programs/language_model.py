"""A causal transformer with fused attention."""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, values):
        batch, length, width = values.shape
        query, key, value = self.project(self.first(values)).chunk(3, -1)
        query, key, value = (
            part.view(batch, length, self.heads, width // self.heads).transpose(1, 2) for part in (query, key, value)
        )
        attended = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        values = values + self.out(attended.transpose(1, 2).reshape(batch, length, width))
        return values + self.feed(self.second(values))


embed, head = nn.Embedding(300, 64), nn.Linear(64, 300, bias=False)
head.weight = embed.weight
model = nn.Sequential(embed, Block(64, 4), Block(64, 4), nn.LayerNorm(64), head).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
for _ in range(4):
    tokens = torch.randint(0, 300, (4, 33), device=device)
    logits = model(tokens[:, :-1])
    loss = F.cross_entropy(logits.reshape(-1, 300), tokens[:, 1:].reshape(-1))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
print("loss", loss.item())
