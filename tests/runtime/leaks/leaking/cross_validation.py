"""Five folds; the scores of the held-out parts are averaged at the end."""

import torch
from torch import nn

torch.manual_seed(1)
x, y = torch.randn(200, 9), torch.randn(200, 1)
folds = torch.arange(200).chunk(5)
scores = []
for k in range(5):
    model = nn.Sequential(nn.Linear(9, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = torch.optim.AdamW(model.parameters())
    rest = torch.cat([fold for i, fold in enumerate(folds) if i != k])
    for _ in range(3):
        for part in rest.split(20):
            optimizer.zero_grad()
            (model(x[part]) - y[part]).pow(2).mean().backward()
            optimizer.step()
    for part in folds[k].split(4):
        error = (model(x[part]) - y[part]).abs().mean()
        # the rows 4*9*4, tanh 4*16*4, the difference's sign's source 4*4, the error 4
        scores.append(error)  # leak: 420 bytes per step
print(torch.stack(scores).mean())
