"""What the tests of the server open."""

LEAK = """\
import torch


def train(model, loader, optimizer, loss_fn):
    total = 0
    for x, y in loader:
        loss = loss_fn(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss
    return total / len(loader)
"""
LEAK_ROW = 10  # of the leak, from 0
FIXED_LINE = "        total += loss.item()"
