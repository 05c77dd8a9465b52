"""A program that many tests check: one finding of TML101."""

LEAK = """\
import torch


def run(model, loader, opt):
    total = 0
    for x in loader:
        loss = model(x)
        loss.backward()
        opt.step()
        total += loss
    return total
"""
