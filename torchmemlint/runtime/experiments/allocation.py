"""Allocation: TML501, TML502, TML503, TML504, TML505, TML506, TML508, TML510, TML511, TML512."""

from __future__ import annotations

import gc
import tempfile
from pathlib import Path

import torch
from torch import nn

from torchmemlint.runtime.experiments.base import Bench
from torchmemlint.runtime.experiments.models import examples, perceptron


def host_then_device(bench: Bench) -> object:
    """A mask that is made for each step."""
    model = perceptron(bench)
    for _ in bench.turns():
        with torch.no_grad():
            shape = bench.size.batch, bench.size.width
            mask = torch.ones(shape, device=bench.device) if bench.good else torch.ones(shape).to(bench.device)
            model(examples(bench) * mask)
    return model


def cast_mask(bench: Bench) -> object:
    """A mask that is made for each step, of truth values or of numbers that are cast to them."""
    kept: torch.Tensor | None = None
    for _ in bench.turns():
        shape = bench.size.batch, bench.size.batch
        wanted = torch.bool if bench.good else torch.float32
        kept = torch.ones(shape, device=bench.device, dtype=wanted).bool()
    return kept


def emptied_cache(bench: Bench) -> object:
    """`torch.cuda.empty_cache()` after each step of a training."""
    model = perceptron(bench)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in bench.turns():
        optimizer.zero_grad()
        model(examples(bench)).square().mean().backward()
        optimizer.step()
        if not bench.good and bench.device.type == "cuda":
            torch.cuda.empty_cache()
    return optimizer


def collected_garbage(bench: Bench) -> object:
    """`gc.collect()` after each step of a training."""
    model = perceptron(bench)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in bench.turns():
        optimizer.zero_grad()
        model(examples(bench)).square().mean().backward()
        optimizer.step()
        if not bench.good:
            gc.collect()
    return optimizer


def loaded_where_it_was_saved(bench: Bench) -> object:
    """A checkpoint read back to the device that saved it, beside the model that takes its values."""
    model = perceptron(bench)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "checkpoint.pt"
        torch.save(model.state_dict(), file)
        for _ in bench.turns():
            model.load_state_dict(torch.load(file, map_location="cpu" if bench.good else bench.device))
    return model


def best_weights(bench: Bench) -> object:
    """The best weights so far, copied where the model is, or to the host."""
    model = perceptron(bench)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    best: dict[str, torch.Tensor] = {}
    for _ in bench.turns():
        optimizer.zero_grad()
        model(examples(bench)).square().mean().backward()
        optimizer.step()
        if bench.good:
            best = {name: value.to("cpu", copy=True) for name, value in model.state_dict().items()}
        else:
            best = {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict(best)
    return optimizer


def kept_checkpoint(bench: Bench) -> object:
    """A checkpoint that stays bound while the model that took its values trains."""
    model = perceptron(bench)
    optimizer = torch.optim.Adam(model.parameters())
    checkpoint = {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict(checkpoint)
    if bench.good:
        del checkpoint
    for _ in bench.turns():
        optimizer.zero_grad()
        model(examples(bench)).square().mean().backward()
        optimizer.step()
    return optimizer


def collected_results(bench: Bench) -> object:
    """The features of a whole data set, wanted on the host."""
    model = perceptron(bench).eval()
    features = []
    with torch.no_grad():
        for _ in bench.turns():
            found = model(examples(bench))
            features.append(found.cpu() if bench.good else found)
    return torch.cat(features).cpu()


def scores_of_each_token(bench: Bench) -> object:
    """Answers of 16 tokens to requests, kept with the scores of 8192 words for each token, where a text is wanted."""
    words = nn.Embedding(8192, bench.size.width, device=bench.device)
    history: list[object] = []
    with torch.no_grad():
        for _ in bench.turns():
            tokens, scores = [torch.zeros(1, dtype=torch.long, device=bench.device)], []
            for _ in range(16):
                scores.append(words(tokens[-1]) @ words.weight.T)
                tokens.append(scores[-1].argmax(-1))
            history.append(torch.cat(tokens).tolist() if bench.good else (tokens, scores))
    return history


def noise_in_double(bench: Bench) -> object:
    """Noise in double precision, as numpy draws it, that makes double precision of the features it is added to."""
    for _ in bench.turns():
        features = examples(bench)
        noise = torch.randn(features.shape, dtype=torch.float64)
        noise = (noise.float() if bench.good else noise).to(bench.device)
        for _ in range(bench.size.depth):
            features = torch.tanh(features + noise)
    return features
