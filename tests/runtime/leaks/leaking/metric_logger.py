"""A logger that is given everything."""

import torch
from torch import nn


class Logger:
    def __init__(self):
        self.rows = []

    def log(self, **metrics):
        self.rows.append(metrics)  # leak: 132 bytes per step

    def last(self):
        return {name: float(value.mean()) for name, value in self.rows[-1].items()}


def train(model, logger, steps):
    optimizer = torch.optim.RMSprop(model.parameters())
    for _ in range(steps):
        outputs = model(torch.randn(8, 6))
        loss = outputs.abs().sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        logger.log(loss=loss, outputs=outputs)


log = Logger()
train(nn.Linear(6, 4), log, 18)
print(log.last())
