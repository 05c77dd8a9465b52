"""Train a small classifier. The tests of the editors open this file."""

import torch
from torch import nn


def train(model: nn.Module, loader, optimizer, device: str, epochs: int) -> None:
    criterion = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        running_loss = 0.0
        for images, labels in loader:
            images = images.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            optimizer.zero_grad()
            loss = criterion(model(images), labels)
            loss.backward(retain_graph=True)
            optimizer.step()
            running_loss += loss
        print(f"epoch {epoch}: loss {running_loss / len(loader):.3f}")


def accuracy(model: nn.Module, loader, device: str) -> float:
    model.eval()
    correct = total = 0
    for images, labels in loader:
        logits = model(images.to(device, non_blocking=True))
        correct += (logits.argmax(dim=1).cpu() == labels).sum()
        total += len(labels)
    return float(correct) / total


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 1024), nn.LeakyReLU(), nn.Linear(1024, 10))
    model.to(device)
    data = torch.utils.data.TensorDataset(torch.rand(512, 1, 28, 28), torch.randint(10, (512,)))
    loader = torch.utils.data.DataLoader(data, batch_size=32, shuffle=True, pin_memory=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    train(model, loader, optimizer, device, epochs=3)
    print(accuracy(model, loader, device))


if __name__ == "__main__":
    main()
