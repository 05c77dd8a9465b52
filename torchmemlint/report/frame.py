"""Code frames: a few lines of source with a span underlined."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchmemlint.findings import Span
from torchmemlint.report.columns import Shown, show
from torchmemlint.report.paint import Paint

CONTEXT = 2  # lines before and after the span
LONGEST = 6  # lines of a span that are shown in full; of a longer one, its first and last
WIDEST = 140  # characters of a line that are shown
_BEFORE = 40  # of those, how many before the span, where it begins late
_LEFT_OUT = 0  # in a list of rows: some are not shown


def span_rows(lines: Sequence[str], span: Span) -> tuple[int, int] | None:
    """First and last row that a span has characters on; None where the file has no such rows."""
    first, last = span.start.row, min(span.end.row, len(lines))
    if not 1 <= first <= len(lines):
        return None
    if last == span.end.row and span.end.column == 1:
        last -= 1  # it ends with a newline
    return first, max(first, last)


def rows_shown(lines: Sequence[str], span: Span) -> list[int]:
    """Rows of the frame in order: the span's with context, blank edges dropped; 0 stands for rows left out."""
    rows = span_rows(lines, span)
    if rows is None:
        return []
    first, last = rows
    top, bottom = max(1, first - CONTEXT), min(len(lines), last + CONTEXT)
    while top < first and not lines[top - 1].strip():
        top += 1
    while bottom > last and not lines[bottom - 1].strip():
        bottom -= 1
    inner = list(range(first, last + 1))
    if len(inner) > LONGEST:
        inner = [*inner[: LONGEST - 2], _LEFT_OUT, *inner[-2:]]
    return [*range(top, first), *inner, *range(last + 1, bottom + 1)]


def code_frame(lines: Sequence[str], span: Span, gutter: int, paint: Paint) -> Iterator[str]:
    """The frame's lines; nothing for a span outside the file. `gutter` is the width of the line numbers."""
    rows = span_rows(lines, span)
    if rows is None:
        return
    blank = f"{' ' * gutter} {paint.gutter('|')}"
    yield blank
    yield from _one_line(lines, span, gutter, paint) if rows[0] == rows[1] else _lines(lines, span, rows, gutter, paint)
    yield blank


def _one_line(lines: Sequence[str], span: Span, gutter: int, paint: Paint) -> Iterator[str]:
    bar = paint.gutter("|")
    for row in rows_shown(lines, span):
        line, here = lines[row - 1], row == span.start.row
        shown, hidden = _window(line, span.start.column if here else 1)
        yield f"{paint.gutter(f'{row:>{gutter}}')} {bar} {shown.text}".rstrip()
        if here:
            end = span.end.column if span.end.row == row else len(line) + 1
            left, right = shown.column(span.start.column - hidden), shown.column(end - hidden)
            yield f"{' ' * gutter} {bar} {' ' * left}{paint.strong('^' * max(right - left, 1))}"


def _lines(lines: Sequence[str], span: Span, rows: tuple[int, int], gutter: int, paint: Paint) -> Iterator[str]:
    bar = paint.gutter("|")
    first, last = rows
    # A span that begins its line has a rule from that line on; one that begins further right, from below it.
    at_margin = not lines[first - 1][: span.start.column - 1].strip()
    for row in rows_shown(lines, span):
        if row == _LEFT_OUT:
            yield f"{paint.gutter('.' * gutter)} {bar} |"
            continue
        shown, _ = _window(lines[row - 1], 1)
        edge = "|" if first < row <= last else "/" if row == first and at_margin else " "
        yield f"{paint.gutter(f'{row:>{gutter}}')} {bar} {edge} {shown.text}".rstrip()
        if row == first and not at_margin:
            mark = "_" * (shown.column(span.start.column) + 1) + "^"
            yield f"{' ' * gutter} {bar}  {paint.strong(mark)}"
        if row == last:
            end = span.end.column if span.end.row == last else len(lines[last - 1]) + 1
            mark = "|" + "_" * max(shown.column(end), 1) + "^"
            yield f"{' ' * gutter} {bar} {paint.strong(mark)}"


def _window(line: str, column: int) -> tuple[Shown, int]:
    """The part of a line around `column` that is shown, and how much to take off its columns."""
    start = 0 if column <= WIDEST * 3 // 4 else column - _BEFORE
    head, tail = "…" if start else "", "…" if start + WIDEST < len(line) else ""
    return show(head + line[start : start + WIDEST] + tail), start - len(head)
