"""What the interpreter found out about one file: the facts that rules ask about.

Every fact names the place (`Site`) it was seen at and the function it belongs to. Facts come from a function's own
analysis only; what an inlined callee does shows in the values it returns.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import libcst as cst

from torchmemlint.doubts import Doubt
from torchmemlint.findings import Span
from torchmemlint.flow.fact.cases import Cases, in_memory
from torchmemlint.flow.fact.formulas import Formula, Formulas
from torchmemlint.flow.fact.outcomes import Case, Place, S
from torchmemlint.flow.ir import ops
from torchmemlint.flow.values import (
    Loops,
    Mode,
    Value,
)
from torchmemlint.immutable import immutable
from torchmemlint.syntax.source_module import Site, SourceModule, span_in

if TYPE_CHECKING:
    from torchmemlint.flow.callers import Callers
    from torchmemlint.flow.interpreter import Interpreter
    from torchmemlint.flow.program import Function, Program


@immutable(frozen=True)
class Scope:
    """Where a fact was seen: the function (None: module level) and what repeats around it."""

    function: Function | None
    loops: Loops
    mode: Mode


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
class Backward:
    """A differentiation: `.backward()`, `autograd.grad`, `manual_backward`, ..."""

    span: Span
    text: str
    retains: bool  # does it keep the graph?
    creates: bool  # do the gradients have a graph?


@immutable(frozen=True)
class Loader:
    """A `DataLoader` built."""

    site: Site
    scope: Scope
    arguments: tuple[tuple[str, Value], ...]
    unknown_keywords: bool  # a **kwargs whose keys are not known
    dataset: Value | None
    oid: int
    iterable: bool  # the data set is an iterable one of the project
    qualified: str = "torch.utils.data.DataLoader"

    def get(self, name: str) -> Value | None:
        """The argument of this name."""
        return dict(self.arguments).get(name)


@dataclass(frozen=True, slots=True)
class BuiltLoader:
    """A `DataLoader` that is built, or one of another library."""

    site: Span
    qualified: str
    get: Callable[[str], object]  # an argument by name


# Kinds of facts, each with some of them or, where they have keys, with these.
Noted: TypeAlias = "list[tuple[str, list[Any]]]"


@dataclass(slots=True)
class FileFacts:
    """Everything known about one file."""

    path: Path
    source: SourceModule
    program: Program
    target_torch: str | None = None  # the oldest release of torch that the code supports; None: the newest
    callers: Callers | None = None  # of the file's functions, in the whole project
    pulse: Callable[[], None] | None = None  # called again and again; what it raises ends the check
    _cases: list[Case] | None = None
    _formulas: Formulas | None = None
    _alone: Cases | None = None  # of a file without a project

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
            self._formulas = Formulas(unit)
        for function in unit.functions:
            if layered or not function.mentions.isdisjoint(words):
                yield self._formulas.of(function)

    def runs_without_gradients(self, function: ops.Span) -> bool:
        """Is a function called with gradients off, wherever it is seen to be called? To be asked last."""
        place, project = Place(self.path, function), self.program.project
        if project is None:
            return self._by_itself().runs_without_gradients(place, self.pulse)
        return project.runs_without_gradients(place, self.source.text, self.pulse)

    def _unit(self) -> ops.Unit | None:
        """The file as operations."""
        project = self.program.project
        if project is None:
            return self._by_itself().unit(self.path)
        return project.unit(self.path, self.source.text)

    def _by_itself(self) -> Cases:
        if self._alone is None:
            self._alone = in_memory({self.path: self.source.text}, self.path.parent, self.program.contracts)
        return self._alone

    def passes(self) -> list[Pass]:
        """The forward passes that the runs of the file, and of the files that import it, show in it."""
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
            for one in self._seen(Cases.forwards)
        ]

    def backwards(self) -> list[Backward]:
        """What differentiates in the file, as those runs show it."""
        spans = ((self.source.span_of(one.place.span), one) for one in self._seen(Cases.backwards))
        return [Backward(span, span.text(self.source.rows), one.retains, one.creates) for span, one in spans]

    def _seen(self, ask: Callable[[Cases, Path, Callable[[], None] | None], tuple[S, ...]]) -> tuple[S, ...]:
        project = self.program.project
        if self.program.is_of_another_framework:
            return ()
        if project is None:
            return ask(self._by_itself(), self.path, self.pulse)
        return ask(project.run(self.path, self.source.text, self.pulse), self.path, self.pulse)

    def overwriting(self) -> list[Case]:
        """What the file overwrites although something still needs it."""
        path, text, project = self.path, self.source.text, self.program.project
        if self.program.is_of_another_framework:
            return []
        if project is None:
            return in_memory({path: text}, path.parent, self.program.contracts).overwriting(path, self.pulse)
        return project.overwriting(path, text, self.pulse)

    def loaders(self) -> list[BuiltLoader]:
        """The loaders that the file builds, as its runs and those of the files that import it show them."""
        path, text, project = self.path, self.source.text, self.program.project
        if self.program.is_of_another_framework:
            return []
        found = (
            self._by_itself().loaders(path, self.pulse) if project is None else project.loaders(path, text, self.pulse)
        )
        return [BuiltLoader(span_in(self.source.rows, one.place.span), one.qualified, one.get) for one in found]

    def forget_cases(self) -> None:
        """The text has changed: run it anew when somebody asks."""
        self._cases = self._formulas = self._alone = None

    def finish(self, it: Interpreter) -> None:
        """Take over what the interpreter knows in the end; a place walked several times counts once, as seen last."""
        for name in _LISTS:
            items = getattr(self, name)
            last = {_identity(item): item for item in items}
            setattr(self, name, list(last.values()))

    def extent(self) -> list[int]:
        """How much has been taken down so far, for `since`."""
        return [len(known) for known in _of_all_kinds(self)]

    def since(self, before: list[int]) -> Noted:
        """What was taken down since an earlier moment."""
        noted = []
        for name, known, length in zip(_KINDS, _of_all_kinds(self), before, strict=True):
            if len(known) > length:
                noted.append((name, list(itertools.islice(known, length, None))))
        return noted

    def forget(self, noted: Noted) -> None:
        """Drop what was taken down in a certain time."""
        for name, facts in noted:
            known = getattr(self, name)
            if isinstance(known, dict):
                for key in facts:
                    known.pop(key, None)
            else:
                gone = {id(fact) for fact in facts}
                known[:] = [fact for fact in known if id(fact) not in gone]


def _callee(text: str) -> str:
    """What is called, as it is written."""
    whole = f"({text})"
    call = ast.parse(whole, mode="eval").body
    return ast.get_source_segment(whole, call.func) or "" if isinstance(call, ast.Call) else text


def _identity(item: Any) -> tuple[object, ...]:
    """What tells two facts of one kind apart."""
    names = ("site", "element", "form", "loader", "kind", "other")
    return tuple(getattr(item, name, None) for name in names)


_LISTS = (
)

# Kinds of facts that a walk adds to, in the order in which they are added.
_KINDS = tuple(kind.name for kind in fields(FileFacts) if kind.default_factory in (list, dict))
_of_all_kinds: Callable[[FileFacts], tuple[list[Any] | dict[Any, Any], ...]] = attrgetter(*_KINDS)
