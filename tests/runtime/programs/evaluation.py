"""Evaluation under no_grad and under inference_mode."""

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)

model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 36, 10)).to(
    device
)
model.eval()
right = 0
for number in range(8):
    images, labels = torch.randn(16, 3, 8, 8, device=device), torch.randint(0, 10, (16,), device=device)
    with torch.inference_mode() if number % 2 else torch.no_grad():
        right += (model(images).softmax(1).argmax(1) == labels).sum().item()
print("right", right)
