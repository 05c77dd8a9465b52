"""Which findings a file's comments silence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torchmemlint.codes import OWN, begun_by, letters_of
from torchmemlint.config.errors import nearest
from torchmemlint.findings import Finding, Span
from torchmemlint.immutable import immutable
from torchmemlint.source.directives import Directive, Scope


@immutable()
class Catalogue:
    """What the comments may refer to: code to name, and which of the rules are on by default."""

    names: Mapping[str, str]
    default: frozenset[str]
    letters: frozenset[str] = frozenset((OWN,))  # what codes begin with: ours, and those of plugins

    def codes(self, reference: str) -> frozenset[str]:
        """The rules that a code, prefix or name means; empty if there is none."""
        code = reference.upper()
        if code in self.names:
            return frozenset((code,))
        if letters_of(code) in self.letters:
            return begun_by(code, self.names)
        return frozenset(known for known, name in self.names.items() if name == reference.lower())

    def nearest(self, reference: str) -> str | None:
        """The code or name that `reference` was perhaps meant to be."""
        is_code = reference.upper().startswith(tuple(self.letters))
        return nearest(reference, self.names if is_code else self.names.values())


def split(
    findings: Sequence[Finding], directives: Sequence[Directive], catalogue: Catalogue
) -> tuple[list[Finding], frozenset[tuple[Span, str]]]:
    """The findings that stay, and what silenced the others: (directive's span, code as written or "").

    A comment silences a finding on the first or last line of its statement or of its own span.
    """
    kept: list[Finding] = []
    used: set[tuple[Span, str]] = set()
    for finding in findings:
        rows = rows_of(finding)
        hits = [
            (directive.span, word)
            for directive in directives
            if directive.scope is Scope.FILE or (directive.row in rows and directive.scope is not Scope.UNKNOWN)
            for word in _hits(directive, finding.code, catalogue)
        ]
        used.update(hits)
        if not hits:
            kept.append(finding)
    return kept, frozenset(used)


def rows_of(finding: Finding) -> tuple[int, ...]:
    """First and last row of its statement and of its span."""
    return (*_ends(finding.statement), *_ends(finding.span))


def _ends(span: Span) -> tuple[int, int]:
    last = span.end.row
    if span.end.column == 1 and last > span.start.row:
        last -= 1  # it ends just after the newline
    return span.start.row, last


def _hits(directive: Directive, code: str, catalogue: Catalogue) -> list[str]:
    if directive.codes is None:
        return [""]
    return [reference.text for reference in directive.codes if code in catalogue.codes(reference.text)]
