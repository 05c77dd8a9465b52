"""A queue of features as for contrastive learning, of which nobody takes."""

from collections import deque

import torch
from torch import nn


class Memory:
    def __init__(self):
        self.queue = deque()

    def enqueue(self, features):
        self.queue.append(features)  # leak: 2048 bytes per step

    def sample(self):
        return self.queue[-1]


encoder = nn.Linear(16, 64)
memory = Memory()
with torch.no_grad():
    for _ in range(24):
        memory.enqueue(encoder(torch.randn(8, 16)))
        memory.sample().mean()
