"""Writing suppression comments: where one goes so that it counts, and is a comment at all."""

from __future__ import annotations

import io
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Sequence

from torchmemlint.findings import Edit, Finding, Position, Span
from torchmemlint.immutable import immutable
from torchmemlint.source.decoding import lines_of
from torchmemlint.source.directives import Directive, Scope, find_directives
from torchmemlint.source.suppressions import rows_of


@immutable()
class Ignoring:
    """The edits that silence findings, one for each row, and the findings that no comment can silence."""

    edits: tuple[Edit, ...]
    left: tuple[Finding, ...]


def ignoring(findings: Iterable[Finding], text: str, reason: str = "") -> Ignoring:
    """How to silence findings of a text where they stand: in the comments that are there, or in new ones.

    A comment goes to the end of the finding's last row, or, where that lies in a string or before a line
    continuation, to an end of its statement. `reason` follows the codes of a new comment.
    """
    lines = lines_of(text)
    closed = _closed_rows(text)
    wanted: defaultdict[int, set[str]] = defaultdict(set)
    left = []
    if closed is None:
        return Ignoring((), tuple(findings))
    findings = list(findings)
    directives = _own_directives(text, findings)
    for finding in findings:
        rows = _rows(finding)
        open_rows = [row for row in rows if row not in closed and row <= len(lines)]
        row = next((row for row in rows if row in directives), next(iter(open_rows), None))
        if row is None:
            left.append(finding)
        else:
            wanted[row].add(finding.code)
    edits = [_edit(row, sorted(codes), directives.get(row), lines[row - 1], reason) for row, codes in wanted.items()]
    return Ignoring(tuple(sorted(edits)), tuple(left))


def _rows(finding: Finding) -> list[int]:
    """The rows on which a comment counts, the nearest to the finding first."""
    first, last, own_first, own_last = rows_of(finding)
    return list(dict.fromkeys((own_last, last, first, own_first)))


def _own_directives(text: str, findings: Sequence[Finding]) -> dict[int, Directive]:
    """The comments of ours with codes, to which more can be added, by their rows."""
    rows = frozenset(row for finding in findings for row in rows_of(finding))
    found: dict[int, Directive] = {}
    for directive in find_directives(text, rows):
        if directive.scope is Scope.LINE and directive.codes:
            found.setdefault(directive.row, directive)
    return found


def _edit(row: int, codes: Sequence[str], directive: Directive | None, line: str, reason: str) -> Edit:
    if directive is not None and directive.codes:
        last = directive.codes[-1].span.end
        return Edit(Span(last, last), "".join(f", {code}" for code in codes))
    start = len(line.rstrip()) + 1
    comment = f"  # torchmemlint: ignore[{', '.join(codes)}]"
    return Edit(Span(Position(row, start), Position(row, len(line) + 1)), f"{comment} {reason}".rstrip())


def _closed_rows(text: str) -> set[int] | None:
    """The rows whose end lies in a string or before a line continuation; None where that cannot be told."""
    closed: set[int] = set()
    source = text.replace("\r\n", "\n").replace("\r", "\n")
    rows = source.split("\n")
    commented: set[int] = set()
    strings: list[int] = []  # the rows in which strings with replacement fields begin that are not yet complete
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            kind = tokenize.tok_name[token.type]
            if kind.endswith("STRING_START"):
                strings.append(token.start[0])
            elif kind.endswith("STRING_END"):
                closed.update(range(strings.pop(), token.end[0]))
            elif token.type == tokenize.STRING:
                closed.update(range(token.start[0], token.end[0]))
            elif token.type == tokenize.COMMENT:
                commented.add(token.start[0])
    except (tokenize.TokenError, SyntaxError, IndexError):
        return None
    return closed | {row for row, line in enumerate(rows, 1) if line.endswith("\\") and row not in commented}
