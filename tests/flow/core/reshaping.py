"""The same program in other shapes: what is found in it may not change."""

from __future__ import annotations

from collections.abc import Callable

from .programs import PRELUDE

_HEAD = "def train(loader):"
_MADE = PRELUDE[PRELUDE.index("model = ") :].rstrip()


def _parts(text: str) -> tuple[list[str], list[str]]:
    """What stands before the last function, and the function without decorators."""
    lines = text.rstrip().split("\n")
    start = lines.index(_HEAD)
    return lines[:start], lines[start:]


def called(text: str) -> str:
    return f"{text.rstrip()}\n\nif __name__ == '__main__':\n    train(torch.load('data'))\n"


def repeated(text: str) -> str:
    return f"{text.rstrip()}\n\ndef main(loader):\n    for epoch in range(2):\n        train(loader)\n"


def accompanied(text: str) -> str:
    return f"{text.rstrip()}\n\ndef unused(loss):\n    loss.mean().backward()\n"


def method(text: str) -> str | None:
    """As the method of a class."""
    before, function = _parts(text)
    if before[-1].startswith("@"):
        return None
    inside = ["    " + line for line in function]
    return "\n".join([*before, "class Run:", *inside]).replace("train(loader)", "train(self, loader)")


def script(text: str) -> str | None:
    """With the function's lines at the top of the file."""
    before, function = _parts(text)
    if before[-1].startswith("@") or any(word in text for word in ("    return", "nonlocal ", "global ")):
        return None
    return "\n".join([*before, "loader = torch.load('data')", *(line[4:] for line in function[1:])])


def given(text: str) -> str | None:
    """With the network as an argument."""
    before, function = _parts(text)
    if "model" in "\n".join(before).replace(_MADE, ""):
        return None
    head = "def train(loader, model: nn.Module, optimizer):"
    return "\n".join([*before, head, *function[1:]]).replace(_MADE, "\n")


def shapeable(text: str) -> bool:
    """Whether the last statement is the function of this head."""
    lines = text.rstrip().split("\n")
    return _HEAD in lines and all(line.startswith("    ") or not line for line in lines[lines.index(_HEAD) + 1 :])


SHAPES: list[Callable[[str], str | None]] = [called, repeated, accompanied, method, script, given]
