"""The place about the cards that can be simulated, made of `torchmemlint/runtime/simulated/cards.py`."""

from __future__ import annotations

from collections.abc import Callable

from torchmemlint.runtime.simulated.cards import CARDS, GIB, Figure


def _place(figure: Figure) -> str:
    """Where torch told a figure, as a link."""
    repository, _, path = figure.where.partition(": ")
    if path:
        return f"[{repository}](https://github.com/{repository}/blob/HEAD/{path})"
    thread, _, remark = figure.where.partition(" ")
    repository, _, number = thread.partition("#")
    link = f"[{thread}](https://github.com/{repository}/issues/{number})"
    return f"{link} {remark}".rstrip()


def _gib(nbytes: int) -> str:
    return f"{nbytes / GIB:.2f}"


def cards() -> str:
    """Each card: its name for `--card`, what torch has of it, its data sheet, and where torch told it."""
    lines = ["| `--card` | GPU | GiB for torch | data sheet | reported in |", "|---|---|--:|--:|---|"]
    for key, card in CARDS.items():
        places = ", ".join(f"{_place(one)}: {_gib(one.nbytes)}" for one in card.figures) or "the data sheet only"
        lines.append(f"| `{key}` | {card.name} | {_gib(card.total)} | {_gib(card.data_sheet)} | {places} |")
    return "\n" + "\n".join(lines) + "\n\n"


MAKERS: dict[str, Callable[[], str]] = {"cards": cards}
