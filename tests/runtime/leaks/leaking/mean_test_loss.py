"""The mean loss over the test set."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.randn(160, 32), torch.randint(0, 10, (160,)))
net = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))
criterion = nn.CrossEntropyLoss()


def test(loader):
    net.eval()
    test_loss = 0
    for x, y in loader:
        # input 8*32*4, ReLU 8*64*4, log-softmax 8*10*4, targets 8*8, total weight 4
        test_loss += criterion(net(x), y)  # leak: 3460 bytes per step
    return test_loss / len(loader)


print(test(DataLoader(data, batch_size=8)))
