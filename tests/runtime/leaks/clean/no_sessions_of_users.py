"""The same as `sessions_of_users` of the leaking ones, without the leak."""

import torch
from torch import nn


model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 8)).eval()


class Service:
    def __init__(self):
        self.sessions = {}

    def handle(self, name, x):
        past = self.sessions.get(name, [])
        with torch.inference_mode():
            out = model(x)
        self.sessions[name] = [*past, out][-2:]
        return out.argmax(-1).tolist()


service = Service()
for request in range(30):
    service.handle(f"user{request % 3}", torch.randn(4, 64))
