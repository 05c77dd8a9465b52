"""A queue to a writer that was never started."""

import queue

import torch
from torch import nn

to_write = queue.Queue()
model = nn.Conv1d(2, 4, 3, padding=1)
model.eval()
for i in range(20):
    with torch.no_grad():
        out = model(torch.randn(2, 2, 16))
    to_write.put(out)  # leak: 512 bytes per step
