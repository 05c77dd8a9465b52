"""Parameters: what the reading of options shares."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import click


@contextlib.contextmanager
def refusing(context: click.Context, parameter: click.Parameter) -> Iterator[None]:
    """Tell a ValueError as what is wrong with an option's value. Raises click.BadParameter."""
    try:
        yield
    except ValueError as error:
        raise click.BadParameter(str(error), context, parameter) from None
