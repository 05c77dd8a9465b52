"""Metrics with an update, a result and a reset, for training and for one test at the end."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Concatenated:
    def __init__(self):
        self.reset()

    def reset(self):
        self.scores, self.labels = [], []

    def update(self, scores, labels):
        self.scores.append(scores.detach())
        self.labels.append(labels)

    def result(self):
        scores, labels = torch.cat(self.scores), torch.cat(self.labels)
        return (scores[labels > 0].mean() - scores[labels <= 0].mean()).item()


def test(model, loader):
    metric = Concatenated()
    model.eval()
    with torch.inference_mode():
        for x, y in loader:
            metric.update(model(x), y)
    return metric.result()


data = TensorDataset(torch.randn(60, 5), torch.randn(60, 1))
model, metric = nn.Linear(5, 1), Concatenated()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    metric.reset()
    for x, y in DataLoader(data, batch_size=5):
        out = model(x)
        optimizer.zero_grad()
        nn.functional.mse_loss(out, y).backward()
        optimizer.step()
        metric.update(out, y)
    print(metric.result())
print(test(model, DataLoader(data, batch_size=4)))
