"""What the terminal can show, and messages on the error stream."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from typing import IO, Any

import click

# As Rust's crate supports-hyperlinks has it.
_LINKING = frozenset({"Hyper", "iTerm.app", "terminology", "WezTerm", "vscode", "ghostty", "zed"})
_LINKING_KINDS = frozenset({"xterm-kitty", "alacritty", "alacritty-direct", "xterm-ghostty"})
_VTE = 5000


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


def width_of(stream: IO[Any]) -> int:
    """Columns of the terminal that somebody watches; 0 where nobody does."""
    return shutil.get_terminal_size().columns if is_terminal(stream) else 0


def knows_links(stream: IO[Any], environment: Mapping[str, str] = os.environ) -> bool:
    """Whether a stream goes to a terminal that is known to show links (OSC 8) as such."""
    if not is_terminal(stream):
        return False
    if (asked := environment.get("FORCE_HYPERLINK")) is not None:
        return asked != "0"
    if environment.get("TERM_PROGRAM") in _LINKING or environment.get("TERM") in _LINKING_KINDS:
        return True
    if environment.get("VTE_VERSION", "0").isdigit() and int(environment.get("VTE_VERSION", "0")) >= _VTE:
        return True
    return any(environment.get(name) for name in ("WT_SESSION", "DOMTERM", "KONSOLE_VERSION"))


def complain(kind: str, message: str) -> None:
    """A line on the error stream; `kind` is `error`, `warning` or `notice`. Names in it play no tricks."""
    from torchmemlint.report.columns import show

    click.echo(f"{kind}: {show(message).text}", err=True, color=False)
