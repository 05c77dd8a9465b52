"""A training whose evaluation runs out of memory, for `torchmemlint oom`: `out_of_memory.pickle` is its snapshot."""

import argparse

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.project(x).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / q.size(-1) ** 0.5
        weights = scores.softmax(dim=-1)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))


class Classifier(nn.Module):
    def __init__(self, width=128, heads=4, depth=2, classes=10):
        super().__init__()
        self.blocks = nn.ModuleList(Attention(width, heads) for _ in range(depth))
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        for block in self.blocks:
            x = x + block(x)
        return self.head(x.mean(1))


def train(model, batches, optimizer):
    model.train()
    for x, y in batches:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def evaluate(model, batches):
    model.eval()
    outputs = []
    for x, _ in batches:
        outputs.append(model(x))
    return torch.cat(outputs)


def make_batches(count, device, batch=8, length=512, width=128):
    for _ in range(count):
        yield torch.randn(batch, length, width, device=device), torch.randint(10, (batch,), device=device)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--share", type=float, default=0.01, help="of the GPU's memory, that may be used")
    share = parser.parse_args().share
    torch.cuda.memory._record_memory_history(max_entries=100_000)
    torch.cuda.set_per_process_memory_fraction(share)
    model = Classifier().to("cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    try:
        train(model, make_batches(3, "cuda"), optimizer)
        evaluate(model, make_batches(50, "cuda"))
    except torch.cuda.OutOfMemoryError:
        torch.cuda.memory._dump_snapshot("out_of_memory.pickle")
        raise


if __name__ == "__main__":
    main()
