# ruff: noqa: E501 (tables of lines)
"""Training and evaluation scripts by a grammar of our own: what people write, in every combination.

Unlike `programs`, which puts any statement anywhere, this one keeps to what means something: models that are built,
optimizers that step, losses that are kept, logged, returned and differentiated. All that comes out compiles.
"""

from __future__ import annotations

import random
import textwrap
from collections.abc import Sequence

Lines = list[str]

IMPORTS = (
    ("import torch", "import torch.nn as nn", "import torch.nn.functional as F"),
    ("import torch", "from torch import nn", "from torch.nn import functional as F"),
    ("import torch", "import torch.nn", "nn = torch.nn", "F = torch.nn.functional"),
)
LAYERS = (
    "nn.Linear(16, 16)", "nn.Conv2d(3, 16, 3, padding=1)", "nn.ReLU()", "nn.ReLU(inplace=True)", "nn.Dropout(0.1)",
    "nn.BatchNorm1d(16)", "nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))", "nn.Sigmoid()",
    "nn.LSTM(16, 16, batch_first=True)", "nn.MultiheadAttention(16, 4)", "nn.Embedding(100, 16)", "nn.LayerNorm(16)",
)  # fmt: skip
FORWARDS = (
    "x = self.{layer}(x)", "x = F.relu(self.{layer}(x))", "x = x + self.{layer}(x)", "x, _ = self.{layer}(x)",
    "x = torch.utils.checkpoint.checkpoint(self.{layer}, x)", "self.last = x", "self.kept.append(x)",
    "x = x.softmax(dim=-1)", "x = torch.log(torch.softmax(x, dim=1))", "x = torch.cat([x, self.{layer}(x)], dim=1)",
    "x = x.view(x.size(0), -1)", "x = F.dropout(x, 0.5)", "x = x * torch.sigmoid(x)", "x = x.detach()",
    "with torch.no_grad():\n    x = self.{layer}(x)", "for _ in range(3):\n    x = self.{layer}(x)",
    "attention = x @ x.transpose(-2, -1) / 4\nx = attention.softmax(-1) @ x",
    "match self.kind:\n    case 'a' | 'b':\n        x = self.{layer}(x)\n    case [first, *rest]:\n        x = x[first]",
)  # fmt: skip
OPTIMIZERS = ("SGD", "Adam", "AdamW", "RMSprop")
LOSSES = ("F.cross_entropy({out}, y)", "criterion({out}, y)", "({out} - y).pow(2).mean()", "F.mse_loss({out}, y)")
BACKWARDS = (
    "loss.backward()", "loss.backward(retain_graph=True)", "(loss / 4).backward()", "scaler.scale(loss).backward()",
    "torch.autograd.backward(loss)", "grads = torch.autograd.grad(loss, model.parameters(), create_graph=True)",
    "accelerator.backward(loss)", "sum(losses).backward()", "",
)  # fmt: skip
AFTER = (
    "total += loss", "total += loss.item()", "total = total + loss", "losses.append(loss)", "losses.append(float(loss))",
    "history['loss'].append(loss)", "history.setdefault(epoch, []).append(out)", "outputs.append(out)", "meter.update(loss)",
    "outputs.append(out.detach().cpu())", "best = loss if best is None else min(best, loss)", "running = 0.9 * running + loss",
    "print(f'{loss}')", "print(loss.item())", "writer.add_scalar('loss', loss, step)", "hidden = hidden.detach()",
    "optimizer.zero_grad()", "optimizer.step()", "scheduler.step()", "torch.cuda.empty_cache()", "del loss, out", "step += 1",
    "nn.utils.clip_grad_norm_(model.parameters(), 1.0)", "scaler.step(optimizer)\nscaler.update()",
    "if step % 100 == 0:\n    torch.save(model.state_dict(), 'model.pt')", "ema = ema * 0.99 + loss.data",
    "if torch.isnan(loss):\n    continue", "if loss < best:\n    best = loss\n    break", "accuracy += (out.argmax(1) == y).sum()",
    "predictions = torch.cat([predictions, out])", "losses = losses[-10:]", "queue.put(out)",
    "try:\n    check(loss)\nexcept RuntimeError as error:\n    failures.append(error)", "model.last_loss = loss",
    "losses[epoch] = loss", "(first, *_), results[f'{step}'] = out, loss", "callback(lambda: loss)",
)  # fmt: skip
SMALL = tuple(text for text in AFTER if "\n" not in text)  # may stand where there is no loop to leave
FORWARD = (
    "out = model(x)", "out = model(x.to(device))", "out, hidden = model(x, hidden)", "out = model(x)['logits']",
    "with torch.autocast('cuda'):\n    out = model(x)", "out = [model(one) for one in x]", "out = model(**x)",
    "out = torch.stack([model(one) for one in x]).mean(0)", "out = step_once(model, x)", "out = await_(model, x)",
)  # fmt: skip
LOADERS = (
    "DataLoader(data, batch_size=32, shuffle=True)", "DataLoader(data, num_workers=8, pin_memory=True)",
    "DataLoader(data, persistent_workers=True, prefetch_factor=8)", "[(torch.randn(4, 16), torch.zeros(4))] * 3",
)  # fmt: skip
HEADS = (
    "for x, y in loader:", "for step, (x, y) in enumerate(loader):", "for x, y in tqdm(loader):",
    "for batch in loader:\n    x, y = batch['x'].cuda(), batch['y'].cuda()", "while step < 100:\n    x, y = next(batches)",
    "for x, y in zip(xs, ys, strict=True):", "for i in range(0, len(data), 32):\n    x, y = data[i : i + 32]",
)  # fmt: skip
MODES = (
    "with torch.no_grad():", "with torch.inference_mode():", "with torch.set_grad_enabled(training):", "if training:",
    "with contextlib.ExitStack() as stack:\n    stack.enter_context(torch.no_grad())", "try:", "if True:",
)  # fmt: skip
DECORATORS = (
    "@torch.no_grad()",
    "@torch.inference_mode()",
    "@torch.no_grad",
    "@torch.compile",
    "@functools.wraps(train)",
)
RETURNS = (
    "return total",
    "return losses",
    "return total / len(loader), out",
    "return {'loss': loss, 'out': out}",
    "return",
)
START = (
    "total, losses, outputs, failures, history, best, step, hidden, running = 0.0, [], [], [], {}, None, 0, None, 0.0"
)


def script(choose: random.Random) -> str:
    """A whole script."""
    lines = [*choose.choice(IMPORTS), "from torch.utils.data import DataLoader", ""]
    for _ in range(choose.randint(0, 2)):
        lines += [*_model(choose), ""]
    for number in range(choose.randint(1, 3)):
        lines += [*_function(choose, f"{choose.choice(('train', 'evaluate', 'validate', 'fit'))}_{number}"), ""]
    if choose.random() < 0.6:
        lines += [*_model_made(choose), *_loop(choose, 2)]
    newline = choose.choice(("\n", "\n", "\n", "\r\n"))
    return newline.join(lines).replace("\r\n", "\n").replace("\n", newline) + newline


def piece(choose: random.Random) -> str:
    """A script of one model or one function, a quarter as long."""
    body = _function(choose, "train") if choose.random() < 0.7 else _model(choose)
    return "\n".join([*choose.choice(IMPORTS), "", *body]) + "\n"


def _some(choose: random.Random, of: Sequence[str], most: int, **holes: str) -> Lines:
    found: Lines = []
    for _ in range(choose.randint(0, most)):
        text = choose.choice(of)
        for hole, value in holes.items():
            text = text.replace(f"{{{hole}}}", value)
        found += text.split("\n")
    return found


def _indented(lines: Lines) -> Lines:
    return textwrap.indent("\n".join(lines), "    ").split("\n")


def _model(choose: random.Random) -> Lines:
    name = choose.choice(("Net", "Encoder", "Meter"))
    base = choose.choice(("nn.Module", "torch.nn.Module", "Base", "nn.Sequential"))
    layers = [f"self.layer{number} = {choose.choice(LAYERS)}" for number in range(choose.randint(1, 4))]
    body = ["def __init__(self, kind=None):", *_indented(["super().__init__()", *layers, "self.kept = []"])]
    body += ["", "def forward(self, x, hidden=None):"]
    forward = _some(choose, FORWARDS, 5, layer=f"layer{choose.randrange(len(layers))}")
    body += _indented([*forward, choose.choice(("return x", "return x, hidden", "return {'logits': x}"))])
    if choose.random() < 0.3:
        body += [
            "",
            "def update(self, value):",
            *_indented(_some(choose, ("self.kept.append(value)", "self.sum += value"), 2)),
        ]
        body[-1:] = [body[-1] if body[-1].strip() else "    pass"]
    return [f"class {name}({base}):", *_indented(body)]


def _model_made(choose: random.Random) -> Lines:
    lines = [f"model = {choose.choice(('Net()', 'Encoder().cuda()', 'nn.Linear(16, 16)', 'build()'))}", START]
    lines += [f"optimizer = torch.optim.{choose.choice(OPTIMIZERS)}(model.parameters(), lr=1e-3)"]
    lines += [f"loader = {choose.choice(LOADERS)}", "criterion = nn.CrossEntropyLoss()"]
    return lines + _some(choose, ("model.eval()", "model.train()", "scaler = torch.amp.GradScaler()", "step = 0"), 2)


def _function(choose: random.Random, name: str) -> Lines:
    body = [
        START,
        *_some(choose, ("model.eval()", "model.train()", "'''A docstring.'''", "criterion = nn.MSELoss()"), 2),
    ]
    body += _loop(choose, choose.randint(1, 3))
    body += [choose.choice(RETURNS)]
    head = choose.choice(
        ("model, loader, optimizer", "self, loader", "model, loader, *, training=True", "*args, **more")
    )
    above = [choose.choice(DECORATORS)] if choose.random() < 0.2 else []
    return [*above, f"def {name}({head}):", *_indented(body)]


def _loop(choose: random.Random, depth: int) -> Lines:
    """A loop over batches, perhaps within epochs, a mode or both."""
    if depth > 1 and choose.random() < 0.5:
        inner = _loop(choose, depth - 1)
        if choose.random() < 0.5:
            return ["for epoch in range(10):", *_indented([*inner, *_some(choose, SMALL, 2)])]
        head, *rest = choose.choice(MODES).split("\n")
        closing = ["finally:", "    pass"] if head == "try:" else []
        return [head, *rest, *_indented(inner), *closing]
    head, *first = choose.choice(HEADS).split("\n")
    body = [*choose.choice(FORWARD).split("\n"), f"loss = {choose.choice(LOSSES).format(out='out')}"]
    body += _some(choose, AFTER, 2) + choose.choice(BACKWARDS).split("\n")
    body += _some(choose, AFTER, 5)
    return [head, *first, *_indented([line for line in body if line])]
