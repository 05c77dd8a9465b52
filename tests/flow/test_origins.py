"""Values that hang on many forward passes."""

from __future__ import annotations

from pathlib import Path

from tests.flow.shown import check_text

COUNT = 40


def model(result: str) -> str:
    """A model of many layers, the output of whose last one is detached; `result`: what its forward returns beside."""
    layers = "".join(f"        self.layer{n} = nn.Linear(8, 8)\n" for n in range(COUNT))
    runs = "".join(f"        y{n} = self.layer{n}(x)\n" for n in range(COUNT))
    return (
        "import torch\nfrom torch import nn\n\n\nclass Model(nn.Module):\n"
        f"    def __init__(self):\n        super().__init__()\n{layers}\n"
        f"    def forward(self, x):\n{runs}"
        f"        target = y{COUNT - 1}.detach()\n"
        f"        return {result}, target\n"
    )


def detached(text: str) -> list[str]:
    return [found.message for found in check_text(text, Path("a.py"), {"TML203"})]


def test_what_a_value_lets_go_of_is_not_taken_for_unused() -> None:
    assert detached(model(" + ".join(f"y{n}" for n in range(COUNT)))) == []
