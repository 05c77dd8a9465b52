"""torch's own transformer encoder, with padded sequences."""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)

layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
model = nn.ModuleDict(
    {"encoder": nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), "head": nn.Linear(32, 2)}
)
model.to(device)
optimizer = torch.optim.Adam(model.parameters())
for _ in range(4):
    values = torch.randn(4, 20, 32, device=device)
    lengths = torch.randint(5, 20, (4,), device=device)
    padding = torch.arange(20, device=device)[None] >= lengths[:, None]
    encoded = model["encoder"](values, src_key_padding_mask=padding)
    loss = F.cross_entropy(model["head"](encoded.mean(1)), torch.randint(0, 2, (4,), device=device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
