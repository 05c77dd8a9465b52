"""Model-agnostic meta-learning: the inner steps' graphs are for the outer backward."""

import torch
from torch import nn

model = nn.Linear(4, 1)
meta = torch.optim.Adam(model.parameters())
for iteration in range(9):
    meta.zero_grad()
    outer = 0.0
    for task in range(3):
        fast = dict(model.named_parameters())
        for _ in range(8):
            x = torch.randn(6, 4)
            loss = torch.func.functional_call(model, fast, (x,)).square().mean()
            grads = torch.autograd.grad(loss, list(fast.values()), create_graph=True)
            fast = {name: value - 0.1 * grad for (name, value), grad in zip(fast.items(), grads, strict=True)}
        outer = outer + torch.func.functional_call(model, fast, (torch.randn(6, 4),)).square().mean()
    outer.backward()
    meta.step()
