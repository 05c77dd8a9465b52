"""The format for reading: code with the evidence in it, why it costs memory, and the fix."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torchmemlint.engine.run import RunReport
from torchmemlint.findings import Edit, Evidence, Finding, Position, Span
from torchmemlint.immutable import immutable
from torchmemlint.report import order, statistics
from torchmemlint.report.changes import diff_lines, hunks
from torchmemlint.report.columns import shorten, show, text_width
from torchmemlint.report.frame import Label, code_frame, labelled, rows_shown
from torchmemlint.report.message import Note, message_of
from torchmemlint.report.paint import Paint
from torchmemlint.report.places import (
    elsewhere,
    evidence_place,
    file_address,
    mark,
    place,
    printed_path,
    shown_place,
)

MANY = 10  # findings, above which each rule's are counted at the end
_LEAST = 20  # columns for text that is wrapped
SOURCE_WIDTH = 44  # columns for the source of a link of the evidence chain


def lines(report: RunReport, root: Path, paint: Paint) -> Iterator[str]:
    """The findings, the most costly first, a blank line after each; then the advice that is folded.

    The first finding of each rule says where to learn more. Many findings end with a count for each rule.
    """
    known: set[str] = set()
    for in_full, repeated in order.shown(report):
        for finding in in_full:
            yield from finding_lines(finding, report, root, paint, more=finding.code not in known)
            known.add(finding.code)
            yield ""
        if repeated:
            yield from order.repeated_lines(repeated, root, paint, unsafe=report.unsafe_fixes)
    yield from order.folded_lines(order.folded(report), root, paint, order.room(report))
    if report.show_summary and len(report.findings) > MANY and len({one.code for one in report.findings}) > 1:
        yield f"{paint.strong('By rule')} (--fix fixes all of [*] and some of [-]):"
        for line in statistics.lines(report, paint):
            yield f"  {line}"
        yield ""


def finding_lines(
    finding: Finding, report: RunReport, root: Path, paint: Paint, *, more: bool = False
) -> Iterator[str]:
    """One finding; `more`: with the address of its rule's page."""
    others, own, lost = _grouped(finding, report, root)
    where, filename = place(finding, finding.span.start), finding.filename
    finding, source = in_its_cell(finding, report.sources(filename))
    changes = hunks(source, finding.fix.edits) if finding.fix is not None else []
    rows = [
        finding.span.start.row,
        *rows_shown(source, finding.span),
        *(label.span.start.row for label in own),
        *(label.span.start.row for group in others for label in group.labels),
        *(hunk.row + len(hunk.old) for hunk in changes),
        *(hunk.row + sum(len(other.new) for other in changes) + 1 for hunk in changes),
    ]
    gutter = len(str(max(rows)))
    yield from _headline(finding, paint, unsafe=report.unsafe_fixes)
    shown = f"{printed_path(filename, root)}:{where.text}"
    yield f"{' ' * gutter}{paint.gutter('-->')} {paint.link(file_address(filename, root), shown)}"
    yield from code_frame(source, finding.span, gutter, paint, own)
    for group in others:
        yield f"{' ' * gutter}{paint.gutter(':::')} {group.where}"
        yield from labelled(group.lines, group.labels, gutter, paint)
    if others:
        yield f"{' ' * gutter} {paint.gutter('|')}"
    margin = f"{' ' * gutter} {paint.gutter('=')} "
    notes = [Note(word, text) for word, text in lost]
    if not rows_shown(source, finding.span):  # there is no frame for them
        notes += [Note(f"line {label.span.start.row}", label.text) for label in own]
    notes += message_of(finding).notes(url=more)
    if more and changes:  # the fix stands above what it changes
        notes[-2:] = reversed(notes[-2:])
    for note in notes:
        aside = f" ({note.aside})" if note.aside else ""
        head = f"{paint.strong(note.label)}{paint.faint(aside)}: "
        yield from _wrapped(margin, gutter + 3, head, len(note.label) + len(aside) + 2, note.text, paint)
    if changes:
        yield f"{' ' * gutter} {paint.gutter('|')}"
        yield from diff_lines(changes, gutter, paint, source)
        yield f"{' ' * gutter} {paint.gutter('|')}"


def _wrapped(margin: str, indent: int, head: str, length: int, text: str, paint: Paint) -> Iterator[str]:
    """A note behind its margin, in as many lines as it takes."""
    room = max(paint.width - indent, _LEAST)
    if not paint.width or length + text_width(text := _one_line(text)) <= room:
        yield f"{margin}{head}{_one_line(text)}"
        return
    first, *more = _filled("x" * length + text, room, subsequent_indent="  ")
    yield f"{margin}{head}{first[length:]}"
    yield from (f"{' ' * indent}{part}" for part in more)


def _filled(text: str, columns: int, **how: Any) -> list[str]:
    """Text in lines that break at blanks alone: names and addresses stay whole."""
    return textwrap.wrap(text, columns, break_on_hyphens=False, break_long_words=False, **how)


@immutable()
class _Group:
    """What stands in another file, or in another cell."""

    where: str  # the first place in it
    lines: Sequence[str]
    labels: list[Label]


def _grouped(
    finding: Finding, report: RunReport, root: Path
) -> tuple[list[_Group], list[Label], list[tuple[str, str]]]:
    """The evidence as labels, numbered where there is more than one.

    What stands elsewhere, in its order; what stands in the finding's own frame; and, with its place, what stands on no
    line that is there.
    """
    groups: dict[object, _Group] = {}
    own: list[Label] = []
    lost: list[tuple[str, str]] = []
    home = place(finding, finding.span.start).cell
    for number, evidence in enumerate(finding.evidence, 1):
        message = _one_line(evidence.message)
        text = f"{number}. {message}" if len(finding.evidence) > 1 else message
        other = elsewhere(evidence, finding, root)
        source, row = report.sources(other or finding.filename), evidence.span.start.row
        at = evidence_place(evidence, finding, evidence.span.start)
        where = shown_place(other, row, root) if other is not None else at.brief
        if not 1 <= row <= len(source):
            lost.append((where if other is not None else f"line {where}", text))
        elif other is not None:
            groups.setdefault(other, _Group(where, source, [])).labels.append(Label(evidence.span, text))
        elif finding.cells is None or at.cell == home:
            first = finding.cells.rows(row)[0] if finding.cells is not None else 1
            own.append(Label(_moved(evidence.span, first), text))
        else:
            first, end = finding.cells.rows(row)
            group = groups.setdefault(at.cell, _Group(where, source[first - 1 : end - 1], []))
            group.labels.append(Label(_moved(evidence.span, first), text))
    return list(groups.values()), own, lost


def in_its_cell(finding: Finding, source: Sequence[str]) -> tuple[Finding, Sequence[str]]:
    """A finding of a notebook as one of its cell alone, with the rows of that cell. What a fix changes in other cells
    is left out.
    """
    if finding.cells is None:
        return finding, source
    first, end = finding.cells.rows(finding.span.start.row)
    fix = finding.fix
    if fix is not None:
        edits = (edit for edit in fix.edits if first <= edit.span.start.row and edit.span.end.row <= end)
        fix = replace(fix, edits=tuple(Edit(_moved(edit.span, first), edit.content) for edit in edits))
    return replace(finding, span=_moved(finding.span, first), fix=fix), source[first - 1 : end - 1]


def _moved(span: Span, first: int) -> Span:
    start, end = span.start, span.end
    return Span(Position(start.row - first + 1, start.column), Position(end.row - first + 1, end.column))


def _headline(finding: Finding, paint: Paint, *, unsafe: bool) -> Iterator[str]:
    colour = finding.severity
    sign = mark(finding, unsafe=unsafe)
    parts = (
        paint.link(message_of(finding).url, paint.severity(colour, finding.code)),
        paint.fixable(sign),
        paint.strong(finding.name),
        paint.severity(colour, f"({finding.severity.value}):"),
    )
    head = " ".join(part for part in parts if part)
    length = len(" ".join(part for part in (finding.code, sign, finding.name, f"({finding.severity.value}):") if part))
    message = _one_line(finding.message)
    if not paint.width:
        yield f"{head} {message}"
        return
    first, *more = _filled(
        "x" * length + f" {message}",
        max(paint.width, length + _LEAST),
        subsequent_indent="  ",
    )
    yield head + first[length:]
    yield from more


def link(evidence: Evidence, finding: Finding, report: RunReport, root: Path) -> tuple[str, str, str]:
    """Place, source and message of one link of the evidence chain."""
    other = elsewhere(evidence, finding, root)
    filename = other or finding.filename
    row = evidence.span.start.row
    source = report.sources(filename)
    own = evidence_place(evidence, finding, evidence.span.start)
    in_other_cell = own.cell != place(finding, finding.span.start).cell
    where = shown_place(filename, row, root) if other is not None else own.brief if in_other_cell else str(own.row)
    return where, _excerpt(source, evidence) if 1 <= row <= len(source) else "", _one_line(evidence.message)


def _excerpt(source: Sequence[str], evidence: Evidence) -> str:
    """The line that the evidence is on, or the evidence alone where the line is too wide."""
    start, end = evidence.span.start, evidence.span.end
    line = source[start.row - 1]
    whole = show(line.strip()).text
    if text_width(whole) <= SOURCE_WIDTH:
        return whole
    part = line[start.column - 1 : end.column - 1 if end.row == start.row else None]
    return shorten(show(part.strip() or line.strip()).text, SOURCE_WIDTH)


def _one_line(text: str) -> str:
    return show(" ".join(text.split())).text
