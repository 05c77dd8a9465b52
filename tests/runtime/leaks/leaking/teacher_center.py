"""Self-distillation: the centre of the teacher's outputs, made with gradients on."""

import torch
import torch.nn.functional as F
from torch import nn


class DistillationLoss(nn.Module):
    def __init__(self, dim, momentum=0.9):
        super().__init__()
        self.momentum = momentum
        self.center = torch.zeros(1, dim)

    def forward(self, student, teacher):
        target = F.softmax(teacher - self.center, dim=-1).detach()
        loss = -(target * F.log_softmax(student, dim=-1)).sum(dim=-1).mean()
        batch_center = teacher.mean(dim=0, keepdim=True)
        # the teacher's input: 16*20*4
        self.center = self.center * self.momentum + batch_center * (1 - self.momentum)  # leak: 1280 bytes per step
        return loss


def main():
    student, teacher = nn.Linear(20, 12), nn.Linear(20, 12)
    criterion = DistillationLoss(12)
    optimizer = torch.optim.AdamW(student.parameters())
    for _ in range(20):
        view1, view2 = torch.randn(16, 20), torch.randn(16, 20)
        loss = criterion(student(view1), teacher(view2))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


main()
