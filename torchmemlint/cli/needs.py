"""What a command needs beyond the base install, asked for before anything else happens."""

from __future__ import annotations

import importlib.util

import click


def torch_or_error(command: str) -> None:
    """Raise a usage error that says how to get torch, where it is not installed. Does not import it."""
    if importlib.util.find_spec("torch") is None:
        raise click.ClickException(f"torchmemlint {command} needs torch: pip install 'torchmemlint[verify]'")
