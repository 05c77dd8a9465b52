"""Printing is put off, by functions that know the loss."""

import torch
from torch import nn

model = nn.Linear(9, 9)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
at_exit = []


def report_later(step, loss, output):
    at_exit.append(lambda: print(step, loss.item(), output.norm().item()))  # leak: 292 bytes per step


for step in range(20):
    output = model(torch.randn(8, 9))
    loss = output.exp().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    report_later(step, loss, output)  # 8*9*4 and 4
for function in at_exit[-2:]:
    function()
