"""A training script of about 1,000 lines, as people write them: data, layers, losses, meters, loops, arguments, main.

It is put together from parts so that it can be as long as a benchmark wants; no two of its classes or functions are the
same. It is read by linters and never run.
"""

from __future__ import annotations

HEAD = '''\
"""Trains an image segmentation model."""

import argparse
import json
import logging
import math
import os
import random
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
from torch.utils.tensorboard import SummaryWriter

logger = logging.getLogger(__name__)


@dataclass
class Config:
    width: int = 64
    depth: int = 4
    classes: int = 21
    lr: float = 3e-4
    weight_decay: float = 0.05
    epochs: int = 100
    warmup: int = 1000
    accumulate: int = 1
    clip: float = 1.0
    amp: bool = True
    stages: list = field(default_factory=lambda: [1, 2, 4, 8])


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)


class AverageMeter:
    def __init__(self, name):
        self.name = name
        self.reset()

    def reset(self):
        self.sum = 0.0
        self.count = 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n

    @property
    def average(self):
        return self.sum / max(self.count, 1)
'''

DATASET = """

class Split{n}(Dataset):
    def __init__(self, root, size={size}, train=True):
        self.root = Path(root) / "split{n}"
        self.size = size
        self.train = train
        self.files = sorted(self.root.glob("*.npz"))
        if not self.files:
            raise FileNotFoundError(f"no samples below {{self.root}}")

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        sample = np.load(self.files[index])
        image = torch.from_numpy(sample["image"]).float() / 255
        mask = torch.from_numpy(sample["mask"]).long()
        if self.train and random.random() < 0.5:
            image, mask = image.flip(-1), mask.flip(-1)
        if self.train:
            top = random.randint(0, max(image.shape[-2] - self.size, 0))
            left = random.randint(0, max(image.shape[-1] - self.size, 0))
            image = image[..., top : top + self.size, left : left + self.size]
            mask = mask[..., top : top + self.size, left : left + self.size]
        return image, mask
"""

BLOCK = """

class Block{n}(nn.Module):
    def __init__(self, channels, expansion={expansion}, dropout=0.{n}):
        super().__init__()
        hidden = channels * expansion
        self.norm = nn.GroupNorm(8, channels)
        self.conv1 = nn.Conv2d(channels, hidden, 1)
        self.conv2 = nn.Conv2d(hidden, hidden, {kernel}, padding={padding}, groups=hidden)
        self.conv3 = nn.Conv2d(hidden, channels, 1)
        self.act = nn.{activation}()
        self.drop = nn.Dropout2d(dropout)
        self.scale = nn.Parameter(torch.full((channels, 1, 1), 1e-{n}))

    def forward(self, x):
        y = self.norm(x)
        y = self.act(self.conv1(y))
        y = self.act(self.conv2(y))
        y = self.drop(self.conv3(y))
        return x + self.scale * y
"""

LOSS = """

def loss{n}(logits, target, smooth={smooth}, ignore=255):
    valid = target != ignore
    target = torch.where(valid, target, torch.zeros_like(target))
    one_hot = F.one_hot(target, logits.shape[1]).movedim(-1, 1).float()
    probabilities = logits.softmax(1) * valid.unsqueeze(1)
    overlap = (probabilities * one_hot).sum((0, 2, 3))
    total = probabilities.sum((0, 2, 3)) + one_hot.sum((0, 2, 3))
    score = (2 * overlap + smooth) / (total + smooth)
    return (1 - score).pow({n}).mean()
"""

MODEL = """

class Attention(nn.Module):
    def __init__(self, dim, heads=8):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, dim * 3)
        self.out = nn.Linear(dim, dim)

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v)
        return self.out(y.transpose(1, 2).reshape(b, n, c))


class Segmenter(nn.Module):
    def __init__(self, config):
        super().__init__()
        width = config.width
        self.stem = nn.Sequential(nn.Conv2d(3, width, 4, stride=4), nn.GroupNorm(8, width))
        self.stages = nn.ModuleList(
            nn.Sequential(*[Block1(width) for _ in range(depth)]) for depth in config.stages
        )
        self.attention = Attention(width)
        self.head = nn.Conv2d(width, config.classes, 1)
        self.auxiliary = nn.Conv2d(width, config.classes, 1)

    def forward(self, x):
        size = x.shape[-2:]
        x = self.stem(x)
        for stage in self.stages:
            x = stage(x)
        b, c, h, w = x.shape
        y = self.attention(x.flatten(2).transpose(1, 2)).transpose(1, 2).view(b, c, h, w)
        main = F.interpolate(self.head(x + y), size=size, mode="bilinear")
        auxiliary = F.interpolate(self.auxiliary(x), size=size, mode="bilinear")
        return main, auxiliary


class EMA:
    def __init__(self, model, decay=0.999):
        self.decay = decay
        self.shadow = {name: p.detach().clone() for name, p in model.named_parameters()}

    @torch.no_grad()
    def update(self, model):
        for name, p in model.named_parameters():
            self.shadow[name].mul_(self.decay).add_(p, alpha=1 - self.decay)

    def copy_to(self, model):
        with torch.no_grad():
            for name, p in model.named_parameters():
                p.copy_(self.shadow[name])
"""

TRAINING = """

def cosine(step, total, warmup):
    if step < warmup:
        return step / max(warmup, 1)
    return 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(total - warmup, 1)))


def save(path, model, optimizer, epoch, best):
    torch.save(
        {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch, "best": best}, path
    )


def resume(path, model, optimizer):
    state = torch.load(path, map_location="cpu")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["epoch"] + 1, state["best"]


def confusion(logits, target, classes):
    prediction = logits.argmax(1)
    valid = target < classes
    index = target[valid] * classes + prediction[valid]
    return torch.bincount(index, minlength=classes**2).view(classes, classes)


def train_one_epoch(model, loader, criterion, optimizer, scheduler, scaler, ema, device, epoch, config, writer):
    model.train()
    meters = defaultdict(lambda: AverageMeter("value"))
    history = []
    start = time.time()
    for step, (images, masks) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        masks = masks.to(device, non_blocking=True)
        with torch.autocast("cuda", enabled=config.amp):
            logits, auxiliary = model(images)
            loss = criterion(logits, masks) + 0.4 * criterion(auxiliary, masks)
            loss = loss / config.accumulate
        scaler.scale(loss).backward()
        if (step + 1) % config.accumulate == 0:
            scaler.unscale_(optimizer)
            norm = nn.utils.clip_grad_norm_(model.parameters(), config.clip)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            scheduler.step()
            ema.update(model)
            meters["norm"].update(norm.item())
        meters["loss"].update(loss.item() * config.accumulate, images.size(0))
        meters["time"].update(time.time() - start)
        start = time.time()
        if step % 50 == 0:
            lr = optimizer.param_groups[0]["lr"]
            logger.info("epoch %d step %d loss %.4f lr %.2e", epoch, step, meters["loss"].average, lr)
            writer.add_scalar("train/loss", meters["loss"].average, epoch * len(loader) + step)
    return {name: meter.average for name, meter in meters.items()}


@torch.no_grad()
def evaluate(model, loader, criterion, device, config):
    model.eval()
    meter = AverageMeter("loss")
    matrix = torch.zeros(config.classes, config.classes, dtype=torch.long, device=device)
    for images, masks in loader:
        images, masks = images.to(device), masks.to(device)
        logits, _ = model(images)
        meter.update(criterion(logits, masks).item(), images.size(0))
        matrix += confusion(logits, masks, config.classes)
    overlap = matrix.diag().float()
    union = matrix.sum(0) + matrix.sum(1) - matrix.diag()
    return {"loss": meter.average, "miou": (overlap / union.clamp(min=1)).mean().item()}


def visualise(model, loader, device, writer, epoch):
    model.eval()
    images, masks = next(iter(loader))
    with torch.inference_mode():
        logits, _ = model(images.to(device))
    prediction = logits.argmax(1).cpu()
    writer.add_images("val/prediction", prediction.unsqueeze(1) / 255, epoch)
    writer.add_images("val/target", masks.unsqueeze(1) / 255, epoch)
"""

MAIN = """

def main():
    args = parse_args()
    seed_everything(args.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    config = Config(width=args.width, lr=args.lr, epochs=args.epochs)
    train_set = Split1(args.data)
    val_set = Split2(args.data, train=False)
    train_loader = DataLoader(
        train_set, batch_size=args.batch_size, shuffle=True, num_workers=args.workers, pin_memory=True, drop_last=True
    )
    val_loader = DataLoader(val_set, batch_size=args.batch_size, num_workers=args.workers, pin_memory=True)
    model = Segmenter(config).to(device)
    criterion = nn.CrossEntropyLoss(ignore_index=255)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.lr, weight_decay=config.weight_decay)
    total = len(train_loader) * config.epochs
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: cosine(step, total, config.warmup))
    scaler = torch.amp.GradScaler("cuda", enabled=config.amp)
    ema = EMA(model)
    writer = SummaryWriter(args.output)
    first, best = resume(args.resume, model, optimizer) if args.resume else (0, 0.0)
    for epoch in range(first, config.epochs):
        stats = train_one_epoch(
            model, train_loader, criterion, optimizer, scheduler, scaler, ema, device, epoch, config, writer
        )
        result = evaluate(model, val_loader, criterion, device, config)
        visualise(model, val_loader, device, writer, epoch)
        logger.info("epoch %d %s %s", epoch, json.dumps(stats), json.dumps(result))
        if result["miou"] > best:
            best = result["miou"]
            save(Path(args.output) / "best.pt", model, optimizer, epoch, best)
    writer.close()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    main()
"""

ARGUMENTS = ("data", "output", "resume", "seed", "width", "lr", "epochs", "batch-size", "workers")
ACTIVATIONS = ("ReLU", "GELU", "SiLU", "Hardswish", "LeakyReLU", "ELU")


def training_script(rows: int = 1000) -> str:
    """A script of about so many rows."""
    parts = [HEAD]
    parts += [DATASET.format(n=n, size=256 + 32 * n) for n in (1, 2)]
    tail = [MODEL, TRAINING, _arguments(), MAIN]
    left = rows - sum(text.count("\n") for text in (*parts, *tail))
    number = 0
    while left > 0:
        number += 1
        if number % 3 == 0:
            parts.append(LOSS.format(n=number, smooth=number / 10))
        else:
            kernel = 3 + 2 * (number % 3)
            activation = ACTIVATIONS[number % len(ACTIVATIONS)]
            block = {"expansion": 2 + number % 3, "kernel": kernel, "padding": kernel // 2, "activation": activation}
            parts.append(BLOCK.format(n=number, **block))
        left -= parts[-1].count("\n")
    return "".join([*parts, *tail])


def _arguments() -> str:
    types = {"seed": "int", "width": "int", "lr": "float", "epochs": "int", "batch-size": "int", "workers": "int"}
    lines = ["", "", "def parse_args():", "    parser = argparse.ArgumentParser(description=__doc__)"]
    for name in ARGUMENTS:
        kind = f", type={types[name]}, default={1}" if name in types else ""
        lines.append(f'    parser.add_argument("--{name}"{kind}, help="the {name} of the run")')
    lines += [f'    parser.add_argument("--option-{n}", type=float, default=0.{n})' for n in range(20)]
    return "\n".join([*lines, "    return parser.parse_args()", ""])
