"""An encoder and a decoder with a skip connection."""

import torch
import torch.nn.functional as F
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.deep = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 32, 3, stride=2, padding=1)
        self.up, self.out = nn.ConvTranspose2d(32, 16, 2, stride=2), nn.Conv2d(32, 4, 1)

    def forward(self, images):
        first = F.relu(self.down(images))
        deep = F.relu(self.deep(first))
        up = self.up(deep) + F.interpolate(deep[:, :16], scale_factor=2, mode="bilinear", align_corners=False)
        return self.out(torch.cat([first, up], 1))


model = Net().to(device)
optimizer = torch.optim.Adam(model.parameters())
for _ in range(4):
    images = torch.randn(2, 3, 32, 32, device=device)
    masks = torch.randint(0, 4, (2, 32, 32), device=device)
    loss = F.cross_entropy(model(images), masks)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("loss", loss.item())
