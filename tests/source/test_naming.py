"""Code that names torch is looked at; strings and comments that speak of it make no file one of torch."""

from __future__ import annotations

import ast
import warnings
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from torchmemlint.config.contracts import Framework
from torchmemlint.engine.one_file import Profile, check_bytes, is_relevant
from torchmemlint.source.naming import names_one

SUM = """\
def evaluate(model, loader):
    model.train(False)
    total = 0.0
    for x in loader:
        total += model(x).mean().item()
    return total
"""


def found(text: str) -> list[str]:
    return [one.code for one in check_bytes(text.encode(), Path("main.py"), Profile(frozenset({"TML201"}))).findings]


@pytest.mark.parametrize(
    "line",
    [
        "import torch",
        "import torchvision.models",
        "from torch.utils import data",
        "import numpy as np, torch as th",
        "if True:\n    import torch",
        "from helpers import torch_device",
        "from lightning.pytorch import Trainer",
        "from accelerate import Accelerator",
        "if helpers.is_torch_available():\n    pass",
        "def step(loss):\n    loss.backward()",
        "def use(net):\n    net.eval()",
        "x = '#'; torch.relu(y)",
        'x = "\\""; torch.relu(y)',
        "'''it's'''; torch.relu(y)",
        "x = 1  # don't\ntorch.relu(y)",
        "x = 'a\\\nb'; torch.relu(y)",
    ],
)
def test_named(line: str) -> None:
    assert is_relevant(line.encode())
    assert found(f"{line}\n\n\n{SUM}") == ["TML201"]


@pytest.mark.parametrize(
    "line",
    [
        "# torch is not needed here",
        '"""What torch.save has written."""',
        "'''\\''' torch'''",
        '"""\n"torch"\n"""',
        "BACKEND = 'torch'",
        'BACKEND = b"torch"',
        "COMMANDS = ['pip install torch', \"loss.backward()\"]",
        "print(f'needs torch {version}')",
        "TEXT = 'a\\\ntorch'",
        "import numpy as np",
        "def backward(loss):\n    return loss.back",
        "table.eval('a + b')",
    ],
)
def test_not_named(line: str) -> None:
    assert not is_relevant(line.encode())
    assert found(f"{line}\n\n\n{SUM}") == []


def test_frameworks_that_the_configuration_adds() -> None:
    acme = Framework("acme", names=(("packages", ("acme.train",)),))
    assert not is_relevant(b"from acme.train import fit\n")
    assert is_relevant(b"from acme.train import fit\n", (acme,))
    assert is_relevant(b"def f():\n    import acme.train\n", (acme,))
    assert not is_relevant(b"x = 'acme.train'\n", (acme,))


PIECES = st.sampled_from(
    [
        "torch",
        "x",
        "'",
        '"',
        "'''",
        '"""',
        "\\",
        "#",
        "\n",
        " ",
        "=",
        "(",
        ")",
        "+",
        "f",
        "r",
        "b",
        "'torch'",
        "# torch\n",
    ]
)


@given(st.lists(PIECES, max_size=30).map("".join))
@example("x = 'torch'\n#'\ntorch")
def test_as_the_parser_has_it(text: str) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of escapes
            tree = ast.parse(text)
    except (SyntaxError, ValueError):
        names_one(text.encode(), (b"torch",))  # nothing is said of it, but it ends
        return
    names = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]
    assert names_one(text.encode(), (b"torch",)) is any("torch" in name for name in names)


@pytest.mark.parametrize(
    ("code", "from_start", "expected"),
    [
        (b"settings.required_torch.release", False, True),
        (b"settings.required_torch.release", True, False),
        (b"torch.zeros(3)", True, True),
        (b"settings.torch.release", True, True),
        (b"loss.backward()", True, True),
    ],
)
def test_where_a_name_begins(code: bytes, from_start: bool, expected: bool) -> None:
    assert names_one(code, (b"torch.", b".backward("), from_start=from_start) is expected


@pytest.mark.parametrize(
    ("piece", "expected"),
    [(b"''", True), (b'""""""', True), (b"\\", True), (b"#", False), (b"'''\\", False), (b'"\n', True)],
)
def test_the_end_of_a_large_text_is_reached(piece: bytes, expected: bool) -> None:
    assert names_one(piece * 300_000 + b"torch", (b"torch",)) is expected
