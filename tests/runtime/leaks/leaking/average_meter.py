"""The meter of the ImageNet example, given a tensor."""

import torch
from torch import nn


class AverageMeter:
    def __init__(self, name):
        self.name = name
        self.reset()

    def reset(self):
        self.val = 0
        self.avg = 0
        self.sum = 0
        self.count = 0

    def update(self, val):
        self.val = val
        self.sum += val  # leak: 3072 bytes per step
        self.count += 1
        self.avg = self.sum / self.count


def validate(model, batches):
    meter = AverageMeter("loss")
    model.eval()
    for images, target in batches:
        output = model(images)
        loss = nn.functional.mse_loss(output, target)
        meter.update(loss)
    return meter.avg


# images 16*32*4, output and target 16*8*4 each
validate(nn.Linear(32, 8), ((torch.randn(16, 32), torch.randn(16, 8)) for _ in range(20)))
