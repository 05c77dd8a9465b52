"""An LSTM over packed sequences."""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)

embed, lstm, head = nn.Embedding(100, 32), nn.LSTM(32, 48, batch_first=True, bidirectional=True), nn.Linear(96, 7)
model = nn.ModuleList([embed, lstm, head]).to(device)
optimizer = torch.optim.Adam(model.parameters())
for _ in range(3):
    tokens, tags = torch.randint(0, 100, (6, 12), device=device), torch.randint(0, 7, (6, 12), device=device)
    lengths = torch.tensor([12, 11, 9, 7, 5, 3])
    packed = nn.utils.rnn.pack_padded_sequence(embed(tokens), lengths, batch_first=True)
    outputs, _ = nn.utils.rnn.pad_packed_sequence(lstm(packed)[0], batch_first=True)
    loss = F.cross_entropy(head(outputs).flatten(0, 1), tags.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
