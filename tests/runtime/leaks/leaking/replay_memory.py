"""A policy's transitions, with log-probabilities that have their graph."""

import random
from collections import namedtuple

import torch
import torch.nn.functional as F
from torch import nn

Transition = namedtuple("Transition", "state log_prob reward")


class ReplayMemory:
    def __init__(self, capacity):
        self.capacity = capacity
        self.memory = []

    def push(self, *args):
        if len(self.memory) >= self.capacity:
            self.memory.pop(0)
        self.memory.append(Transition(*args))  # leak: 152 bytes per step


policy = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
buffer = ReplayMemory(10_000)
for episode in range(10):
    state = torch.randn(1, 4)
    done = False
    while not done:
        # state 4*4, ReLU 32*4, log-softmax 2*4
        log_probs = F.log_softmax(policy(state), dim=-1)
        action = random.randrange(2)
        buffer.push(state, log_probs[0, action], 1.0)
        state, done = torch.randn(1, 4), random.random() < 0.1
