"""Reinforcement learning: sampled actions, discounted returns."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)

policy = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 2)).to(device)
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
for _ in range(4):
    state = torch.randn(4, device=device)
    chances, rewards = [], []
    for step in range(20):
        choice = torch.distributions.Categorical(logits=policy(state))
        action = choice.sample()
        chances.append(choice.log_prob(action))
        state = state * 0.9 + torch.randn(4, device=device) * 0.1
        rewards.append(1.0 if action.item() == step % 2 else 0.0)
    returns, total = [], 0.0
    for reward in reversed(rewards):
        total = reward + 0.99 * total
        returns.insert(0, total)
    wanted = torch.tensor(returns, device=device)
    loss = -(torch.stack(chances) * (wanted - wanted.mean())).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
