"""Code and messages as markup. All text is escaped here or by the template."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup, escape

from torchmemlint.findings import Span
from torchmemlint.immutable import immutable
from torchmemlint.report.columns import show
from torchmemlint.report.frame import rows_shown
from torchmemlint.report.places import one_line

WIDEST = 240  # characters of a row that are shown
_BEFORE = 60  # of those, how many before the marked ones, where they begin late


@immutable()
class Row:
    """A row of code: its number (0 where rows are left out), and its text before, in and after the mark."""

    number: int
    before: str
    marked: str
    after: str


def frame(source: Sequence[str], span: Span) -> Iterator[Row]:
    """The rows around a stretch of code, which is marked."""
    for number in rows_shown(source, span):
        if not number:
            yield Row(0, "", "", "")
            continue
        line = source[number - 1]
        start, end = _marked(line, number, span)
        first = max(0, start - _BEFORE) if start > WIDEST - _BEFORE else 0
        last = min(len(line), first + WIDEST)
        yield Row(
            number,
            ("…" if first else "") + _shown(line[first:start]),
            _shown(line[start : min(end, last)]),
            _shown(line[min(end, last) : last]) + ("…" if last < len(line) else ""),
        )


def _marked(line: str, number: int, span: Span) -> tuple[int, int]:
    """The characters of a row that a stretch covers, but for the indentation; nothing of rows around it."""
    if not span.start.row <= number <= span.end.row:
        return len(line), len(line)
    indented = len(line) - len(line.lstrip())
    start = span.start.column - 1 if number == span.start.row else indented
    end = span.end.column - 1 if number == span.end.row else len(line)
    return min(start, len(line)), max(start, min(end, len(line)))


def message(text: str) -> Markup:
    """A message in which what stands between backticks is code."""
    parts = one_line(text).split("`")
    if len(parts) % 2 == 0:
        return escape("`".join(parts))
    marked = (
        Markup("<code>{}</code>").format(part) if number % 2 else escape(part) for number, part in enumerate(parts)
    )
    return Markup("").join(marked)


def _shown(text: str) -> str:
    return show(text).text
