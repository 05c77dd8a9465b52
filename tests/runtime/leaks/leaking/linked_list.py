"""Every node of a search knows its parent."""

import torch
from torch import nn


class Node:
    def __init__(self, embedding, parent):
        self.embedding = embedding
        self.parent = parent


@torch.no_grad()
def search(model, depth):
    node = None
    for _ in range(depth):
        embedding = model(torch.randn(2, 16))
        node = Node(embedding, node)  # leak: 192 bytes per step
    return node


search(nn.Linear(16, 24), 24)
