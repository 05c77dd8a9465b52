"""Actor and critic: an episode's log-probabilities and values are used by one backward at its end."""

import torch
from torch import nn


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 16), nn.Tanh())
        self.actor, self.critic = nn.Linear(16, 2), nn.Linear(16, 1)

    def forward(self, state):
        hidden = self.body(state)
        return torch.distributions.Categorical(logits=self.actor(hidden)), self.critic(hidden)


agent = Agent()
optimizer = torch.optim.Adam(agent.parameters())
lengths = []
for episode in range(12):
    log_probs, values, rewards = [], [], []
    state, done = torch.zeros(3), False
    while not done:
        distribution, value = agent(state)
        action = distribution.sample()
        log_probs.append(distribution.log_prob(action))
        values.append(value.squeeze())
        rewards.append(float(action))
        state, done = torch.randn(3), len(rewards) == 10
    returns = torch.tensor(rewards).flip(0).cumsum(0).flip(0)
    advantage = returns - torch.stack(values)
    loss = -(torch.stack(log_probs) * advantage.detach()).sum() + advantage.square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    lengths.append(len(rewards))
