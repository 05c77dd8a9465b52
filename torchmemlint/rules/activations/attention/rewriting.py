"""The edits that put a call of `F.scaled_dot_product_attention` in the place of an attention written out."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.findings import Edit, Position, Span
from torchmemlint.flow.facts import FileFacts
from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.ir.calls import works_in_place
from torchmemlint.flow.ir.control import If
from torchmemlint.flow.ir.ops import Bind, CallMethod, GetAttribute, Load, Op, Operate, SetItem
from torchmemlint.flow.ir.places import Name, Temp
from torchmemlint.flow.ir.reaching import defined
from torchmemlint.rules.activations.attention.chain import Attention, Kind
from torchmemlint.rules.activations.attention.fused import FusedCall, NoCallError
from torchmemlint.rules.removal import unread


def edits(found: Attention, facts: FileFacts, *, with_scale: bool) -> tuple[Edit, ...]:
    """Edits that replace the attention by a call of the fused function; () where none can be given.

    `with_scale`: does the oldest torch in use have the argument `scale`?
    """
    try:
        return _Rewriting(found, facts).edits(with_scale)
    except NoCallError:
        return ()


class _Rewriting:
    def __init__(self, found: Attention, facts: FileFacts) -> None:
        self.found = found
        self.facts = facts
        self.source = source = facts.source
        self.formula = found.formula
        self.sum = source.span_of(found.sum.op.span)
        self.statement = source.statement_span(self.sum)
        self.stages = {stage.step.op: stage.step.kind for stage in found.past()}
        self.naming = [naming for op in self.stages for naming in self._naming(op)]  # what gives the stages names

    def edits(self, with_scale: bool) -> tuple[Edit, ...]:
        dropped = self._dropped()
        names = {name.text for op in self.naming if (name := defined(op)) is not None}
        call = FusedCall(self.found, self._text, names, with_scale=with_scale)
        written = call.written()
        self._check_names(dropped, call.moved, names)
        span = self._span_with_brackets()
        removals = tuple(self._removals(dropped))
        needless = self._needless_modules([*dropped, self.sum])
        return (*self._kept_comments(removals), *removals, Edit(span, written), *needless)

    def _needless_modules(self, gone: list[Span]) -> Iterator[Edit]:
        """Yield what takes out the module of the softmax, where nothing else runs it."""
        modules = {
            op.name
            for op in self.stages
            if isinstance(op, CallMethod)
            and self.stages[op] is Kind.SOFTMAX
            and self.formula.flow.path(op.base) == "self"
        }
        for name in modules:
            yield from unread(self.facts, name, gone)

    def _text(self, op: Op) -> str:
        return " ".join(self.source.span_of(op.span).text(self.source.rows).split())

    def _naming(self, op: Op) -> list[Op]:
        if isinstance(op, Operate | CallMethod) and isinstance(op.place, Name):
            return [op]
        return [taking for taking in self.formula.flow.following(op) if isinstance(taking, Bind)]

    def _statement(self, op: Op) -> Span:
        return self.source.statement_span(self.source.span_of(op.span))

    def _dropped(self) -> list[Span]:
        """The statements that go: all that lead to the weights, but for the one with the result."""
        layout, home = self.found.layout, self.found.layout.home(self.found.sum.op)
        leading = {statement for op in self.stages if (statement := self._statement(op)) != self.statement}
        for statement in leading:  # each binds or changes a name, and does nothing else
            begun = [op for op in self.naming if self.source.span_of(op.span).start == statement.start]
            if len(begun) != 1 or (isinstance(begun[0], CallMethod) and not begun[0].dropped):
                raise NoCallError
        found: dict[Span, None] = {}
        for op in self.stages:
            statement = self._statement(op)
            if statement not in leading:
                continue
            if layout.home(op) is not home:
                around = next((above for above, _ in layout.above(op)), None)
                if not isinstance(around, If) or around.orelse or layout.home(around) is not home:
                    raise NoCallError
                if any(self._statement(inner) not in leading for inner in around.then):
                    raise NoCallError
                statement = self.source.span_of(around.span)
            found[statement] = None
        return sorted(found, key=lambda span: span.start)

    def _check_names(self, dropped: list[Span], moved: list[Temp], names: set[str]) -> None:
        """What is evaluated later than before must mean the same there, and what goes must not be asked for."""
        order, flow = self.found.layout.order, self.formula.flow
        last = order[self.found.sum.op]
        loads = [op for op in flow.behind(*moved) if isinstance(op, Load)]
        for load in loads:
            if load.name.text in names and any(
                not (isinstance(by, GetAttribute) and by.name in ("dtype", "device")) for by in flow.taken[load.dst]
            ):
                raise NoCallError
        used = {load.name.text: order[load] for load in sorted(loads, key=order.__getitem__, reverse=True)}
        for op in operations(self.formula.function.body):
            name = defined(op)
            changed = name.text if name is not None else ""
            if isinstance(op, SetItem) or (isinstance(op, CallMethod) and works_in_place(op.name)):
                changed = flow.path(op.base)
            if op not in self.naming and used.get(changed, last) < order[op] < last:
                raise NoCallError
        gone = [*dropped, self.sum]
        for load in (load for op in self.naming for load in self.formula.readers(op)):
            place = self.source.span_of(load.span)
            if not any(span.contains(place) for span in gone):
                raise NoCallError

    def _removals(self, dropped: list[Span]) -> Iterator[Edit]:
        rows = self.source.rows
        groups: list[tuple[int, int]] = []
        for span in dropped:
            first, last = span.start.row, span.end.row
            after = rows[last - 1][span.end.column - 1 :].strip()
            if rows[first - 1][: span.start.column - 1].strip() or (after and not after.startswith("#")):
                raise NoCallError
            if groups and all(not rows[row].strip() for row in range(groups[-1][1], first - 1)):
                groups[-1] = (groups[-1][0], last)
            else:
                groups.append((first, last))
        for first, last in groups:
            blank_before = first < 2 or not rows[first - 2].strip()
            if blank_before and last < len(rows) and not rows[last].strip():
                last += 1
            yield Edit(Span(Position(first, 1), Position(last + 1, 1)), "")

    def _kept_comments(self, removals: tuple[Edit, ...]) -> Iterator[Edit]:
        """Yield what puts comments above the statement that stays: not those behind what goes, which speak of that."""
        rows = self.source.rows
        removed = (edit.span for edit in removals if "#" in edit.span.text(rows))
        comments = (one for span in removed for one in self.source.comments_in(span))
        found = [text for place, text in comments if not rows[place.row - 1][: place.column - 1].strip()]
        first = self.statement.start
        if found and not rows[first.row - 1][: first.column - 1].strip():
            above = Position(first.row, 1)
            indent = rows[first.row - 1][: first.column - 1]
            yield Edit(Span(above, above), "".join(f"{indent}{one}\n" for one in found))

    def _span_with_brackets(self) -> Span:
        """Of the weighted sum, with the brackets that only a method called on it needed."""
        start, end, rows = self.sum.start, self.sum.end, self.source.rows
        before, after = rows[start.row - 1][: start.column - 1], rows[end.row - 1][end.column - 1 :]
        alone = before.endswith("(") and not (before[:-1] and (before[-2].isalnum() or before[-2] in "_)]"))
        if alone and after.startswith(")."):
            return Span(Position(start.row, start.column - 1), Position(end.row, end.column + 1))
        return self.sum
