"""Reinforcement learning: a replay buffer on the device, a target network."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)

online = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 4)).to(device)
target = copy.deepcopy(online).requires_grad_(False)
optimizer = torch.optim.Adam(online.parameters())
states, rewards = torch.zeros(256, 8, device=device), torch.zeros(256, device=device)
actions = torch.zeros(256, dtype=torch.int64, device=device)
for step in range(64):
    place = step % 256
    states[place] = torch.randn(8, device=device)
    with torch.no_grad():
        actions[place] = online(states[place]).argmax()
    rewards[place] = float(actions[place].item() == 1)
    if step < 16 or step % 8:
        continue
    rows = torch.randint(0, step, (16,), device=device)
    with torch.no_grad():
        wanted = rewards[rows] + 0.9 * target(states[rows + 1]).max(1).values
    found = online(states[rows]).gather(1, actions[rows][:, None]).squeeze(1)
    loss = F.smooth_l1_loss(found, wanted)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    for slow, fast in zip(target.parameters(), online.parameters()):
        slow.data.mul_(0.95).add_(fast.data, alpha=0.05)
print("loss", loss.item())
