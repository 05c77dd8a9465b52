"""A small training with three leaks, for `torchmemlint verify` and `trace`. It asks for CUDA, and runs without."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = "cuda" if torch.cuda.is_available() else "cpu"


def make_model(width=256, depth=4):
    layers = []
    for _ in range(depth):
        layers += [nn.Linear(width, width), nn.GELU()]
    return nn.Sequential(*layers, nn.Linear(width, 10))


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = make_model()
        self.seen = []

    def forward(self, batch):
        hidden = self.layers[:-1](batch)
        self.seen.append(hidden.mean())
        return self.layers[-1](hidden)


def validate(model, loader, criterion):
    model.eval()
    total = 0.0
    for batch, target in loader:
        total += criterion(model(batch.to(device)), target.to(device))
    model.train()
    return total / len(loader)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    options = parser.parse_args()
    model = Classifier().to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    data = TensorDataset(torch.randn(2048, 256), torch.randint(10, (2048,)))
    loader = DataLoader(data, batch_size=64, shuffle=True)
    for epoch in range(options.epochs):
        for batch, target in loader:
            loss = criterion(model(batch.to(device)), target.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, float(validate(model, loader, criterion)))


if __name__ == "__main__":
    main()
