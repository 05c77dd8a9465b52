"""A function whose results one file only shows, and others differentiate."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchmemlint.engine.checking import check_text
from torchmemlint.flow.project import Project

SAMPLING = """\
import torch
from torch import nn


def sampled(embedding, labels, negatives):
    rows = embedding(torch.cat([labels, negatives]))
    return rows[: len(labels)] @ rows[len(labels) :].T


if __name__ == "__main__":
    table = nn.Embedding(1000, 32)
    print(sampled(table, torch.arange(4), torch.arange(9)).detach().numpy())
"""
MODEL = """\
import sys

from torch import nn

sys.path.append("helpers")
from sampling import sampled


class Model(nn.Module):
    def forward(self, labels, negatives):
        return sampled(self.embedding, labels, negatives).logsumexp(-1).mean()
"""


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        pytest.param(MODEL, 0, id="another file imports and calls it"),
        pytest.param(MODEL.replace("sampled", "drawn"), 0, id="another file imports the module for something else"),
        pytest.param(MODEL.replace("from sampling", "from pool"), 1, id="another file imports a namesake"),
    ],
)
def test_a_demonstration_says_nothing_of_the_other_callers(tmp_path: Path, model: str, expected: int) -> None:
    path = tmp_path / "helpers" / "sampling.py"
    path.parent.mkdir()
    path.write_text(SAMPLING)
    (tmp_path / "model.py").write_text(model)
    found = list(check_text(SAMPLING, path, frozenset({"TML203"}), Project(tmp_path)))
    assert len(found) == expected, found
