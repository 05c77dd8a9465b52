"""Gradients of a layer's output by a backward hook."""

import torch
from torch import nn


class GradCam:
    def __init__(self, layer):
        self.gradients = []
        layer.register_full_backward_hook(self._save)

    def _save(self, module, grad_input, grad_output):
        self.gradients.append(grad_output[0])  # leak: 512 bytes per step


model = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 2))
cam = GradCam(model[0])
for _ in range(20):  # 8*16 floats
    model.zero_grad()
    scores = model(torch.randn(8, 10))
    scores[:, 1].sum().backward()
