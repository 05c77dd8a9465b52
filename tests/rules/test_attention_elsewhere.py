"""TML304 where the softmax, or a function that has the name of torch's, stands in another file of the project."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from torchmemlint.engine.checking import check_text
from torchmemlint.findings import Finding
from torchmemlint.flow.project import Project

SOFTMAX = """
import torch


def normalised(x, axis=-1):
    powers = torch.exp(x - x.amax(axis, keepdim=True))
    return powers / powers.sum({summed}, keepdim=True)
"""
ATTENTION = """
from torch import nn
{imported}


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x):
        weights = {call}(self.query(x) @ self.key(x).transpose(-2, -1))
        return weights @ self.value(x)
"""
CHOSEN = """
import {module}


def attend(q, k, v):
    return {module}.scaled_dot_product_attention(q, k, v)
"""


def found(folder: Path, main: str, others: Mapping[str, str]) -> list[Finding]:
    for name, text in {"main.py": main, **others}.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return list(check_text(main, folder / "main.py", frozenset({"TML304"}), Project(folder)))


@pytest.mark.parametrize(
    ("imported", "call"),
    [
        ("from numbers_of_ours import normalised", "normalised"),
        ("from numbers_of_ours import normalised as shares", "shares"),
        ("from nets.math import normalised", "normalised"),
        ("from nets import normalised", "normalised"),
    ],
)
def test_softmax_of_another_file(tmp_path: Path, imported: str, call: str) -> None:
    softmax = SOFTMAX.format(summed="axis")
    (finding,) = found(
        tmp_path,
        ATTENTION.format(imported=imported, call=call),
        {
            "numbers_of_ours.py": softmax,
            "nets/__init__.py": "from .math import normalised",
            "nets/math.py": softmax,
        },
    )
    within = [(link.filename.name, link.span.start.row) for link in finding.evidence if link.filename is not None]
    assert [row for _, row in within] == [6, 6, 7]  # what is subtracted, the powers, the quotient
    assert {name for name, _ in within} <= {"numbers_of_ours.py", "math.py"}


def test_sum_over_another_axis_of_another_file(tmp_path: Path) -> None:
    main = ATTENTION.format(imported="from shares import normalised", call="normalised")
    assert not found(tmp_path, main, {"shares.py": SOFTMAX.format(summed="0")})


def test_function_that_is_imported_from_nowhere(tmp_path: Path) -> None:
    assert not found(tmp_path, ATTENTION.format(imported="from shares import normalised", call="normalised"), {})


@pytest.mark.parametrize(("module", "expected"), [("kernels", 1), ("torch.nn.functional", 0), ("unseen", 0)])
def test_only_the_function_of_torch_is_a_choice(tmp_path: Path, module: str, expected: int) -> None:
    main = ATTENTION.format(imported="from torch import softmax", call="nn.Softmax(dim=-1)")
    main = main.replace("nn.Softmax(dim=-1)(", "softmax(").replace(".transpose(-2, -1))", ".transpose(-2, -1), dim=-1)")
    ours = "def scaled_dot_product_attention(q, k, v):\n    return (q @ k.mT).softmax(-1) @ v\n"
    assert len(found(tmp_path, main + CHOSEN.format(module=module), {"kernels.py": ours})) == expected
