"""What is known of one file: the facts that rules ask about."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from torchmemlint.doubts import Doubt
from torchmemlint.findings import Span
from torchmemlint.flow.domain.heap import Mode
from torchmemlint.flow.fact.asking import Asking
from torchmemlint.flow.fact.cases import Cases, in_memory
from torchmemlint.flow.fact.details import Arrival
from torchmemlint.flow.fact.formulas import Formula, Formulas
from torchmemlint.flow.fact.outcomes import Case
from torchmemlint.flow.fact.place import Place
from torchmemlint.flow.ir import ops
from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.program import Program
from torchmemlint.immutable import immutable
from torchmemlint.syntax.source_module import SourceModule, span_in


@immutable(frozen=True)
class Pass:
    """A forward pass: a network is called, or one of its methods; None where runs differ, or where it is not known."""

    span: Span
    callee: str  # source text of what is called
    gradients: bool | None  # are they enabled?
    evaluating: bool | None  # was eval() called on the network last?
    switched: Span | None  # where, in this file
    differentiated: bool  # does a backward run through it?
    doubts: frozenset[Doubt]  # whether it is a pass


@immutable(frozen=True)
class Retention:
    """A graph that something keeps for longer than a backward pass needs it."""

    span: Span  # what keeps it
    text: str
    how: str  # "sum", "collection", "hook", "cache", "output" or "slot"
    graphs: tuple[Span, ...]  # where the graphs begin that are kept, in this file
    loop: Span | None  # the loop of this file in which it grows
    grows: bool  # with each iteration, or does it keep one graph until the next?
    spent: bool  # has a backward pass freed the activations?
    doubts: frozenset[Doubt]


@immutable(frozen=True)
class Backward:
    """A differentiation: `.backward()`, `autograd.grad`, `manual_backward`, ..."""

    span: Span
    text: str
    retains: bool  # does it keep the graph?
    creates: bool  # do the gradients have a graph?


@immutable(frozen=True)
class Loader:
    """A `DataLoader` that is built, or one of another library."""

    span: Span
    qualified: str
    get: Callable[[str], object]  # an argument by name


@dataclass(slots=True)
class FileFacts:
    """Everything known about one file."""

    path: Path
    source: SourceModule
    program: Program
    target_torch: str | None = None  # the oldest release of torch that the code supports; None: the newest
    pulse: Callable[[], None] | None = None  # called again and again; what it raises ends the check
    _cases: list[Case] | None = None
    _formulas: Formulas | None = None
    _alone: Cases | None = None  # of a file without a project
    _asking: Asking | None = None

    def cases(self) -> list[Case]:
        """What the runs of the file, and of the files that import it, show of it; told once."""
        if self._cases is None:
            path, text, project = self.path, self.source.text, self.program.project
            if self.program.is_of_another_framework:
                self._cases = []
            elif project is None:
                self._cases = self._by_itself().of(path, self.pulse)
            else:
                self._cases = project.cases(path, text, self.pulse)
        return self._cases

    def arriving(self) -> frozenset[Arrival]:
        """Where graphs go that something may need, in those runs. To be asked first, or else they are run again."""
        if self.program.is_of_another_framework:
            return frozenset()
        project = self.program.project
        if project is None:
            return self._by_itself().arriving(self.path, self.pulse)
        return project.arriving(self.path, self.source.text, self.pulse)

    def formulas(self, words: frozenset[str], layers: frozenset[str] = frozenset()) -> Iterator[Formula]:
        """The formulas of the functions that mention some words; of all, where the file names one of some layers.

        None of tests, where nothing is large.
        """
        text = self.source.text
        layered = any(name in text for name in layers)
        if self.program.is_test or self.program.is_of_another_framework:
            return
        if not layered and not any(word in text for word in words):
            return
        unit = self._unit() if self._formulas is None else self._formulas.unit
        if unit is None:
            return
        if self._formulas is None:
            project = self.program.project
            self._formulas = Formulas(unit, project.function if project is not None else None)
        for function in unit.functions:
            if layered or not function.mentions.isdisjoint(words):
                yield self._formulas.of(function)

    def functions(self, words: frozenset[str]) -> Iterator[tuple[str, Formula]]:
        """The functions of the project that a file knows by a name of its own, if it holds one of some words."""
        body = next(self.formulas(frozenset(), words), None)
        beside = body.beside if body is not None else None
        for name in (*beside.unit.once, *beside.unit.imports) if beside is not None else ():
            found = beside.function(name) if beside is not None else None
            if found is not None:
                yield name, found

    def calls(self, *words: str) -> Iterator[tuple[Formula, ops.Call | ops.CallMethod, str]]:
        """The calls of a file that mentions one of some words, each with the qualified name of what it calls."""
        for formula in self.formulas(frozenset(), frozenset(words)):
            for op in operations(formula.function.body):
                if isinstance(op, ops.Call | ops.CallMethod) and (name := formula.called(op)):
                    yield formula, op, name

    def runs_without_gradients(self, function: ops.Span) -> bool:
        """Is a function called with gradients off, wherever it is seen to be called? To be asked last."""
        runs = self._runs()
        return runs is not None and runs.mode_of(Place(self.path, function), self.pulse) is Mode.OFF

    def passes(self) -> list[Pass]:
        """The forward passes that the runs of the file, and of the files that import it, show in it."""
        runs = self._runs()
        return [
            Pass(
                span := self.source.span_of(one.place.span),
                _callee(span.text(self.source.rows)),
                one.gradients,
                one.evaluating,
                self.source.span_of(at.span) if (at := one.switched) is not None and at.path == self.path else None,
                one.differentiated,
                one.doubts,
            )
            for one in (runs.forwards(self.path, self.pulse) if runs is not None else ())
        ]

    def retentions(self) -> list[Retention]:
        """What keeps graphs in the file, as those runs show it."""

        def here(place: Place) -> Span | None:
            return self.source.span_of(place.span) if place.path == self.path else None

        return [
            Retention(
                span := self.source.span_of(one.place.span),
                span.text(self.source.rows),
                one.how.value,
                tuple(found for graph in one.graphs if (found := here(graph)) is not None),
                here(one.loop) if one.loop is not None else None,
                not one.advice,
                one.spent,
                one.doubts,
            )
            for one in self.cases()
            if one.how is not None
        ]

    def asking(self) -> Asking | None:
        """Answers about single places of the file; None where it is of another framework."""
        if self._asking is None and not self.program.is_of_another_framework:
            unit = self._unit()
            if unit is not None:
                self._asking = Asking(unit, self.program.contracts, self._recording, self._mode_of)
        return self._asking

    def _recording(self) -> dict[ops.Span, bool | None]:
        """The forward passes that runs show, and whether they record graphs."""
        runs = self._runs()
        return {one.place.span: one.gradients for one in (runs.forwards(self.path, self.pulse) if runs else ())}

    def _mode_of(self, function: ops.Function) -> Mode | None:
        """The gradient mode in which runs call a function; None where they do not."""
        runs = self._runs()
        return runs.mode_of(Place(self.path, function.span), self.pulse) if runs is not None else None

    def backwards(self) -> list[Backward]:
        """What differentiates in the file, as those runs show it."""
        runs = self._runs()
        spans = (
            (self.source.span_of(one.place.span), one)
            for one in (runs.backwards(self.path, self.pulse) if runs else ())
        )
        return [Backward(span, span.text(self.source.rows), one.retains, one.creates) for span, one in spans]

    def loaders(self) -> list[Loader]:
        """The loaders that the file builds, as those runs show them."""
        runs = self._runs()
        found = runs.loaders(self.path, self.pulse) if runs is not None else ()
        return [Loader(self.source.span_of(one.place.span), one.qualified, one.get) for one in found]

    def overwriting(self) -> list[Case]:
        """What the file overwrites although something still needs it."""
        runs = self._runs()
        return runs.overwriting(self.path, self.pulse) if runs is not None else []

    def place(self, op: ops.Op) -> tuple[Span, Path | None]:
        """Where an operation of a formula stands; with the file, if that is another one."""
        project = self.program.project
        if project is None or self._formulas is None or op.owner.unit is self._formulas.unit:
            return self.source.span_of(op.span), None
        path = project.path(op.owner.unit)
        return span_in(self.rows(path), op.span), path

    def rows(self, path: Path) -> list[str]:
        """The lines of a file of the project."""
        text = self.program.project.text(path) if self.program.project is not None else None
        return SourceModule.rows_of(text or "")

    def _unit(self) -> ops.Unit | None:
        """The file as operations."""
        project = self.program.project
        if project is None:
            return self._by_itself().unit(self.path)
        return project.unit(self.path, self.source.text)

    def _runs(self) -> Cases | None:
        """What runs of the file, and of those that import it, show; None for a file of another framework."""
        if self.program.is_of_another_framework:
            return None
        project = self.program.project
        if project is None:
            return self._by_itself()
        self.cases()  # runs them, and takes down what they rest on
        return project.runs

    def _by_itself(self) -> Cases:
        if self._alone is None:
            self._alone = in_memory({self.path: self.source.text}, self.path.parent, self.program.contracts)
        return self._alone


def _callee(text: str) -> str:
    """What is called, as it is written."""
    whole = f"({text})"
    call = ast.parse(whole, mode="eval").body
    return ast.get_source_segment(whole, call.func) or "" if isinstance(call, ast.Call) else text
