"""A language model's perplexity on held-out text after its training, without no_grad."""

import math

import torch
from torch import nn

VOCABULARY, WIDTH, LENGTH = 20, 8, 6


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, WIDTH)
        self.out = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens):
        return self.out(self.embed(tokens))


def loss_of(model, tokens):
    logits = model(tokens[:-1])
    return nn.functional.cross_entropy(logits, tokens[1:], reduction="sum")


def perplexity(model, text):
    terms = []
    for start in range(0, len(text) - LENGTH, LENGTH):
        # embedding 6*8*4, log-softmax 6*20*4, total weight 4, the term 4; the tokens are views
        terms.append(loss_of(model, text[start : start + LENGTH + 1]))  # leak: 680 bytes per step
    return math.exp(sum(terms).item() / len(text))


text = torch.randint(0, VOCABULARY, (121,))
model = Model()
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(2):
    for start in range(0, 90, 9):
        loss = loss_of(model, text[start : start + 9])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(perplexity(model, text))
