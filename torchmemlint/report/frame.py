"""Code frames: a few lines of source with a span underlined, and others with what they show."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from torchmemlint.findings import Position, Span
from torchmemlint.immutable import immutable
from torchmemlint.report.columns import Shown, show, text_width
from torchmemlint.report.paint import Paint

CONTEXT = 2  # lines before and after the span
LONGEST = 6  # lines of a span that are shown in full; of a longer one, its first and last
WIDEST = 140  # characters of a line that are shown
_BEFORE = 40  # of those, how many before the span, where it begins late
_NARROWEST = 24  # characters of a line that are shown in the narrowest terminal
_TEXT = 30  # columns for a label, at least, before it begins further left than what it is about
_LEFT_OUT = 0  # in a list of rows: some are not shown


@immutable()
class Label:
    """What another stretch of the source shows."""

    span: Span
    text: str


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


def code_frame(
    lines: Sequence[str], span: Span, gutter: int, paint: Paint, labels: Sequence[Label] = ()
) -> Iterator[str]:
    """The frame's lines; nothing for a span outside the file. `gutter` is the width of the line numbers.

    `labels` are underlined, too, each with its text; the one of the span itself stands at its mark.
    """
    rows = span_rows(lines, span)
    if rows is None:
        return
    inside = [label for label in labels if 1 <= label.span.start.row <= len(lines)]
    shown = _with_labels(rows_shown(lines, span), inside)
    blank = f"{' ' * gutter} {paint.gutter('|')}"
    yield blank
    yield from _Frame(lines, span, rows, gutter, paint, inside).rows(shown)
    yield blank


def labelled(lines: Sequence[str], labels: Sequence[Label], gutter: int, paint: Paint) -> Iterator[str]:
    """A frame of labels alone, as for another file."""
    inside = [label for label in labels if 1 <= label.span.start.row <= len(lines)]
    yield f"{' ' * gutter} {paint.gutter('|')}"
    yield from _Frame(lines, None, (0, 0), gutter, paint, inside).rows(_with_labels([], inside))


def _with_labels(shown: Sequence[int], labels: Sequence[Label]) -> list[int]:
    """Rows in order, with those of the labels; 0 between those that do not follow on each other."""
    found: list[int] = []
    for row in sorted({*shown, *(label.span.start.row for label in labels)} - {_LEFT_OUT}):
        if found and row == found[-1] + 2:
            found.append(row - 1)  # as short as the sign for it
        elif found and row > found[-1] + 1:
            found.append(_LEFT_OUT)
        found.append(row)
    return found


class _Frame:
    """One frame as it is written."""

    def __init__(
        self,
        lines: Sequence[str],
        span: Span | None,
        rows: tuple[int, int],
        gutter: int,
        paint: Paint,
        labels: Sequence[Label],
    ) -> None:
        self._lines = lines
        self._span = span
        self._first, self._last = rows
        self._gutter = gutter
        self._paint = paint
        self._labels = labels
        self._several = rows[0] != rows[1]
        # A span that begins its line has a rule from that line on; one that begins further right, from below it.
        self._at_margin = span is not None and not lines[rows[0] - 1][: span.start.column - 1].strip()

    def rows(self, shown: Sequence[int]) -> Iterator[str]:
        """Each row with the marks below it."""
        before = 0
        for row in shown:
            if row == _LEFT_OUT:
                edge = " |" if self._several and self._first <= before < self._last else ""
                yield f"{self._paint.gutter('.' * self._gutter)} {self._paint.gutter('|')}{edge}"
                continue
            before = row
            yield from self._row(row)

    def _row(self, row: int) -> Iterator[str]:
        paint, line = self._paint, self._lines[row - 1]
        labels = [label for label in self._labels if label.span.start.row == row]
        own = [label for label in labels if label.span == self._span]
        others = sorted((label for label in labels if label.span != self._span), key=lambda label: label.span.start)
        begins = self._span is not None and row == self._first
        starts = [self._span.start.column] if begins and not self._several and self._span is not None else []
        shown, hidden = self._window(line, min((*starts, *(label.span.start.column for label in labels)), default=1))
        yield f"{paint.gutter(f'{row:>{self._gutter}}')} {paint.gutter('|')} {self._edge(row)}{shown.text}".rstrip()
        inner = "| " if self._several and self._first <= row < self._last else "  " if self._several else ""
        lead, right = "", 0  # the mark of the span, where another one stands beside it, and the column that it ends at
        if begins and self._several and self._span is not None:
            if not self._at_margin:
                mark = "_" * (shown.column(self._span.start.column) + 1) + "^"
                yield f"{' ' * self._gutter} {paint.gutter('|')}  {paint.strong(mark)}"
        elif begins and self._span is not None:
            beside = bool(others) and not own and self._span.start < self._span.end <= others[0].span.start
            if beside:
                left, right = (shown.column(place.column - hidden) for place in (self._span.start, self._span.end))
                lead = " " * left + paint.strong("^" * (right - left))
            else:
                yield from self._marked(self._span, shown, hidden, line, "^", own, inner)
        seen: list[Span] = []
        for label in others:
            if label.span not in seen:
                seen.append(label.span)
                same = [one for one in others if one.span == label.span]
                yield from self._marked(label.span, shown, hidden, line, "-", same, inner, (lead, right))
                lead, right = "", 0
        if self._several and row == self._last and self._span is not None:
            end = self._span.end.column if self._span.end.row == row else len(line) + 1
            mark = "|" + "_" * max(shown.column(end), 1) + "^"
            texts = [label.text for label in self._labels if label.span == self._span]
            yield from self._texts(paint.strong(mark), 0, len(mark), texts)

    def _edge(self, row: int) -> str:
        """What stands before a line of a span of several lines."""
        if not self._several:
            return ""
        return "| " if self._first < row <= self._last else "/ " if row == self._first and self._at_margin else "  "

    def _marked(
        self,
        span: Span,
        shown: Shown,
        hidden: int,
        line: str,
        sign: str,
        labels: Sequence[Label],
        inner: str,
        lead: tuple[str, int] = ("", 0),
    ) -> Iterator[str]:
        """The mark below a stretch of a line, with what is said of it; in front of it another mark, with its end."""
        end = span.end if span.end.row == span.start.row else Position(span.start.row, len(line.rstrip()) + 1)
        left, right = shown.column(span.start.column - hidden), shown.column(end.column - hidden)
        text = sign * max(right - left, 1)
        mark = self._paint.strong(text) if sign == "^" else self._paint.gutter(text)
        before = f"{lead[0]}{' ' * (left - lead[1])}"
        return self._texts(f"{inner}{before}{mark}", left + len(inner), right - left, [one.text for one in labels])

    def _texts(self, marked: str, left: int, length: int, texts: Sequence[str]) -> Iterator[str]:
        """A mark and the texts of its labels: the first beside it, where there is room, the others below."""
        paint = self._paint
        start = f"{' ' * self._gutter} {paint.gutter('|')} "
        room = paint.width - self._gutter - 3 if paint.width else 0
        beside = texts[0] if texts else ""
        fits = not room or left + length + 1 + text_width(beside) <= room
        yield f"{start}{marked} {paint.label(beside)}" if beside and fits else f"{start}{marked}"
        indent = left if not room or room - left >= _TEXT else max(room - _TEXT, 0) if room >= _TEXT else 0
        for text in texts[1 if fits else 0 :]:
            for part in textwrap.wrap(text, room - indent) if room > indent else [text]:
                yield f"{start}{' ' * indent}{paint.label(part)}"

    def _window(self, line: str, column: int) -> tuple[Shown, int]:
        """The part of a line around `column` that is shown, and how much to take off its columns."""
        widest = WIDEST
        if self._paint.width:
            widest = min(WIDEST, max(self._paint.width - self._gutter - (5 if self._several else 3), _NARROWEST) - 2)
        start = 0 if column <= widest * 3 // 4 else column - min(_BEFORE, widest // 3)
        head, tail = "…" if start else "", "…" if start + widest < len(line) else ""
        return show(head + line[start : start + widest] + tail), start - len(head)
