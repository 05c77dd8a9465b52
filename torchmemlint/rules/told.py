"""A case as rules see it: where it stands, how sure it is, and what is said of it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from torchmemlint.doubts import Doubt, confidence
from torchmemlint.findings import Applicability, Evidence, Finding, Fix, Severity, Span
from torchmemlint.flow.fact.details import About, Serving
from torchmemlint.flow.fact.outcomes import Case
from torchmemlint.flow.fact.place import Place
from torchmemlint.flow.facts import FileFacts
from torchmemlint.rules.arguments import WrittenCall, call_at
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import doubts_of, report
from torchmemlint.syntax import standard
from torchmemlint.syntax.source_module import Piece, span_in
from torchmemlint.syntax.text import shortened

A = TypeVar("A", bound=About)

_SHOWN = 40  # characters of code in a message
_CALLS = 3  # of a chain of calls


class Told:
    """One case, with the file that it is reported in."""

    def __init__(self, facts: FileFacts, case: Case) -> None:
        self.facts, self.case = facts, case
        self._rows: dict[Path, list[str]] = {facts.path: facts.source.rows}
        self.span = self.span_of(case.place)
        self.doubts = case.doubts | ({Doubt.UNMADE} if case.unmade else set()) | doubts_of(case.amount)
        self.confidence = confidence(self.doubts)

    @cached_property
    def text(self) -> str:
        """The source text of where it stands."""
        return self.span.text(self.facts.source.rows)

    @property
    def brief(self) -> str:
        """That text in one line that is not too long."""
        return self.text_of(self.case.place)

    @cached_property
    def statement(self) -> Span:
        """The statement that it stands in."""
        return self.facts.source.statement_span(self.span)

    @property
    def piece(self) -> Piece | None:
        """The piece of the file that it stands in."""
        return self.facts.source.piece_at(self.span)

    def about(self, kind: type[A]) -> A:
        """What only the rules that word such cases ask."""
        assert isinstance(self.case.about, kind)
        return self.case.about

    def call_at(self, place: Place | None) -> WrittenCall | None:
        """The call that stands at a place; None where none does, or in another file."""
        return None if place is None or place.path != self.facts.path else call_at(self.facts, self.span_of(place))

    @cached_property
    def call(self) -> WrittenCall | None:
        """The call that it is about."""
        return self.call_at(self.case.place)

    def finding(
        self,
        rule: Rule,
        message: str,
        evidence: Iterable[Evidence],
        *,
        severity: Severity | None = None,
        fix: Fix | None = None,
        hint: str = "",
        doubts: Iterable[Doubt] = (),
    ) -> Finding:
        """The finding that a rule makes of it; `hint` says what to do where no edits are offered."""
        amount, doubts = self.case.amount, self.doubts.union(doubts)
        severity = severity or (Severity.ADVICE if self.case.advice else None)
        fix = Fix(hint, Applicability.HINT) if hint else fix
        return report(
            rule, self.facts, self.span, message, evidence, severity=severity, fix=fix, doubts=doubts, amount=amount
        )

    def here(self, message: str) -> Evidence:
        """Its own place with what happens there."""
        return self.link(self.case.place, message)

    def links(self, places: Iterable[Place | None], message: str) -> list[Evidence]:
        """Places that contribute the same, without those that are not known."""
        return [self.link(place, message) for place in places if place is not None]

    def link(self, place: Place, message: str) -> Evidence:
        """A place with what it contributes."""
        return Evidence(message, self.span_of(place), None if place.path == self.facts.path else place.path)

    def around(self, message: str) -> Iterator[Evidence]:
        """The loop that it stands in, without its body."""
        loop = self.case.loop
        if loop is not None:
            yield self.link(Place(loop.path, (*loop.span[:3], loop.span[1])), message)

    def begun(self) -> Iterator[Evidence]:
        """Where the graphs begin."""
        for place in self.case.graphs:
            if place != self.case.place:
                head = self.callee_of(place)
                what = head[4:] if head.startswith("def ") else self.text_of(place)  # a method of a network, or a call
                yield self.link(place, f"`{what}` builds the graph")

    def each(self) -> Iterator[Evidence]:
        """What shows that it happens for every batch."""
        serving = self.about(Serving)
        if serving.each is not None and serving.shown is not None:
            yield self.link(serving.shown, serving.each.value)

    def called(self) -> Iterator[Evidence]:
        """The calls that lead there, innermost first."""
        for place in self.case.calls[:_CALLS]:
            yield self.link(place, "called from here")

    def span_of(self, place: Place) -> Span:
        """Return where a place is, in characters."""
        return span_in(self.rows_of(place.path), place.span)

    def text_of(self, place: Place) -> str:
        """Return the source text of a place, in one line that is not too long."""
        text = self.span_of(place).text(self.rows_of(place.path))
        return shortened(text, _SHOWN)

    def callee_of(self, place: Place) -> str:
        """Return what a call calls, as it is written."""
        return self.span_of(place).text(self.rows_of(place.path)).partition("(")[0]

    def statements_of(self, path: Path) -> Sequence[ast.stmt]:
        """Return the statements of a file of the project; none of one that cannot be read."""
        if path == self.facts.path:
            return self.facts.source.statements
        try:
            return standard.parse("\n".join(self.rows_of(path))).body
        except (SyntaxError, ValueError):
            return ()

    def rows_of(self, path: Path) -> list[str]:
        """Return the rows of a file of the project."""
        if path not in self._rows:
            self._rows[path] = self.facts.rows(path)
        return self._rows[path]
