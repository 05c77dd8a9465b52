"""The options that name a GPU to simulate: `--card` and `--memory`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from torchmemlint.cli.parameters import refusing
from torchmemlint.sizes import parse_size

Command = TypeVar("Command", bound=Callable[..., Any])
SIMULATING = ("auto", "simulated")
"""Backends for which a GPU can be named."""


def card_options(command: Command) -> Command:
    """Add `--card NAME` and `--memory SIZE`, checked; `card` and `memory` (bytes) are None where they are not given."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def needs_simulation(options: Mapping[str, Any]) -> None:
    """Raise a usage error where a GPU is named, and the backend measures what is there."""
    for name in ("card", "memory"):
        if options[name] is not None and options["backend"] not in SIMULATING:
            raise click.UsageError(
                f"--{name} names a GPU to simulate; --backend {options['backend']} measures what is there. "
                "Leave --backend out, or give --backend simulated."
            )


def _card(context: click.Context, parameter: click.Parameter, written: str | None) -> str | None:
    return None if written is None else _checked(context, parameter, written, written, None)


def _memory(context: click.Context, parameter: click.Parameter, written: str | None) -> int | None:
    if written is None:
        return None
    with refusing(context, parameter):
        nbytes = parse_size(written)
    if written.strip().isdecimal():
        raise click.BadParameter(
            f"write {written.strip()} with its unit, like {written.strip()}GiB", context, parameter
        )
    return _checked(context, parameter, nbytes, None, nbytes)


Value = TypeVar("Value")


def _checked(
    context: click.Context, parameter: click.Parameter, value: Value, card: str | None, memory: int | None
) -> Value:
    from torchmemlint.runtime.simulated import cards

    with refusing(context, parameter):
        cards.card(card, memory)
    return value


_OPTIONS = (
    click.option(
        "--card",
        callback=_card,
        metavar="NAME",
        help="The GPU to simulate: t4, rtx4090, a100-80gb, h100, …  [default: a100-40gb]",
    ),
    click.option(
        "--memory",
        callback=_memory,
        metavar="SIZE",
        help="The memory that it has for torch, instead of its own: 22GiB, 14.5 GB.",
    ),
)
