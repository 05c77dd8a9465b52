"""What the terminal can show, and messages on the error stream."""

from __future__ import annotations

import os
from typing import IO, Any

import click


def wants_color(choice: str, stream: IO[Any]) -> bool:
    """Whether to colour what goes to `stream`: the option, then NO_COLOR and FORCE_COLOR, then what the stream is."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return is_terminal(stream) and os.environ.get("TERM") != "dumb"


def is_terminal(stream: IO[Any]) -> bool:
    """Whether somebody is watching."""
    try:
        return stream.isatty()
    except (AttributeError, ValueError):  # closed, or not a real stream
        return False


def complain(kind: str, message: str) -> None:
    """A line on the error stream; `kind` is `error`, `warning` or `notice`. Names in it play no tricks."""
    from torchmemlint.report.columns import show

    click.echo(f"{kind}: {show(message).text}", err=True, color=False)
