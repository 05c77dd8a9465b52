"""Backward with retain_graph, because of an error message, and losses for a plot."""

import torch
import torch.nn as nn

model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
mse = nn.MSELoss()

losses = []
for epoch in range(20):
    x = torch.randn(8, 16)
    y = torch.randn(8, 1)
    loss = mse(model(x), y)
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
    # x 8*16*4, ReLU 8*32*4, prediction and y 8*4 each, and the loss, a view's worth of the 8*4 of the squared errors
    losses.append(loss)  # leak: 1632 bytes per step
