"""What the reports of runs share: texts by rich that go to a stream, and rows of a name and a figure."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import TextIO

from rich.console import Console
from rich.text import Text

from torchmemlint.report.places import emit


def write_texts(texts: Iterable[Text], stream: TextIO, *, color: bool) -> None:
    """Write each on lines of its own, none of them broken."""
    written = io.StringIO()
    console = Console(file=written, force_terminal=color, no_color=not color, highlight=False, soft_wrap=True)
    for text in texts:
        console.print(text)
    emit(stream, written.getvalue())


def rows(named: Iterable[tuple[str, str]], indent: int = 4) -> Iterator[Text]:
    """Names in a column, and beside each what it is."""
    all_rows = list(named)
    width = max((len(name) for name, _ in all_rows), default=0)
    for name, value in all_rows:
        yield Text.assemble(" " * indent, (f"{name:{width}}  ", "dim"), value)
