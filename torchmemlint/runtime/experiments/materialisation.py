"""Tensors that are written out where less would do: TML309."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from torchmemlint.runtime.experiments.base import Bench
from torchmemlint.runtime.experiments.models import examples

VOCABULARY = 8
"""So many times as many words as features are predicted: what is written out for each word outweighs the rest."""


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
