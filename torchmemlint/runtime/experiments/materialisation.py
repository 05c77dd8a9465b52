"""Tensors that are written out where less would do: TML305, TML306, TML307, TML308, TML309, TML311."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from torchmemlint.runtime.experiments.base import Bench
from torchmemlint.runtime.experiments.models import examples

VOCABULARY = 8
"""So many times as many words as features are predicted: what is written out for each word outweighs the rest."""
SEQUENCES = 8


def log_of_softmax(bench: Bench) -> object:
    """The loss of a language model's head: the logarithm of a softmax kept from zero, or log_softmax."""
    words = bench.size.width * VOCABULARY
    head = nn.Linear(bench.size.width, words, device=bench.device)
    said = torch.randint(words, (bench.size.batch,), device=bench.device)
    for _ in bench.turns():
        scores = head(examples(bench))
        chances = torch.log_softmax(scores, 1) if bench.good else torch.log(torch.softmax(scores, 1) + 1e-8)
        head.zero_grad()
        functional.nll_loss(chances, said).backward()
    return head


def words_of_last_token(bench: Bench) -> object:
    """Scores of words after each token, or after the last one of each sequence."""
    head = nn.Linear(bench.size.width, bench.size.width * VOCABULARY, device=bench.device)
    best: torch.Tensor | None = None
    with torch.no_grad():
        for _ in bench.turns():
            tokens = examples(bench).view(SEQUENCES, -1, bench.size.width)
            best = head(tokens[:, -1:] if bench.good else tokens)[:, -1].argmax(-1)
    return best


def log_of_each_word(bench: Bench) -> object:
    """One log-probability per token: looked up in those of all words, or of one sequence at a time."""
    vocabulary = bench.size.width * VOCABULARY
    head = nn.Linear(bench.size.width, vocabulary, device=bench.device)
    said = torch.randint(vocabulary, (SEQUENCES, bench.size.batch // SEQUENCES), device=bench.device)
    for _ in bench.turns():
        scores = head(examples(bench).view(*said.shape, -1))
        parts = zip(scores, said, strict=True) if bench.good else [(scores, said)]
        chances = [torch.log_softmax(one, -1).gather(-1, words.unsqueeze(-1)) for one, words in parts]
        head.zero_grad()
        torch.stack(chances).sum().neg().backward()
    return head


def looked_up_by_product(bench: Bench) -> object:
    """Rows of a table, looked up by a product with one-hot rows, or by indices."""
    words, width = bench.size.width * VOCABULARY, bench.size.width
    table = nn.Parameter(torch.randn(words, width, device=bench.device))
    for _ in bench.turns():
        tokens = torch.randint(words, (bench.size.batch,), device=bench.device)
        vectors = table[tokens] if bench.good else functional.one_hot(tokens, words).float() @ table
        table.grad = None
        vectors.square().mean().backward()
    return table


def one_hot_targets(bench: Bench) -> object:
    """A classifier of many classes, whose targets are one-hot rows or labels."""
    classes = bench.size.width * VOCABULARY
    head = nn.Linear(bench.size.width, classes, device=bench.device)
    for _ in bench.turns():
        wanted = torch.randint(classes, (bench.size.batch,), device=bench.device)
        target = wanted if bench.good else functional.one_hot(wanted, classes).float()
        head.zero_grad()
        functional.cross_entropy(head(examples(bench)), target).backward()
    return head


def distances_of_pairs(bench: Bench) -> object:
    """Distances of all rows of a batch to centres, by the differences of their features or by cdist."""
    centres = nn.Parameter(torch.randn(bench.size.width, bench.size.width, device=bench.device))
    for _ in bench.turns():
        rows = examples(bench)
        gaps = torch.cdist(rows, centres) if bench.good else (rows[:, None] - centres[None]).norm(dim=-1)
        centres.grad = None
        gaps.mean().backward()
    return centres


def similarities_of_pairs(bench: Bench) -> object:
    """Cosine similarities of all pairs of a batch: torch's function on rows spread against each other, or a product."""
    head = nn.Linear(bench.size.width, bench.size.width, device=bench.device)
    for _ in bench.turns():
        rows = head(examples(bench))
        if bench.good:
            normal = functional.normalize(rows, dim=-1)
            alike = normal @ normal.t()
        else:
            alike = functional.cosine_similarity(rows.unsqueeze(1), rows.unsqueeze(0), dim=-1)
        head.zero_grad()
        alike.mean().backward()
    return head


def concatenated_in_loop(bench: Bench) -> object:
    """Features collected over a pass, all of them concatenated anew with each batch, or once."""
    parts: list[torch.Tensor] = []
    features = torch.empty(0, bench.size.width, device=bench.device)
    for _ in bench.turns():
        if bench.good:
            parts.append(examples(bench))
        else:
            features = torch.cat([features, examples(bench)])
    return torch.cat(parts) if bench.good else features


def repeated_gate(bench: Bench) -> object:
    """A number for each example that scales its features, copied for each of them or shown for each."""
    head = nn.Linear(bench.size.width, 1, device=bench.device)
    for _ in bench.turns():
        rows = examples(bench)
        gate = head(rows)
        wide = gate.expand(-1, bench.size.width) if bench.good else gate.repeat(1, bench.size.width)
        head.zero_grad()
        (rows * wide).square().mean().backward()
    return head
