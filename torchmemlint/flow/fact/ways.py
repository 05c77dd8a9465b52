"""Ways: a function's blocks in the order in which they may be run, branches side by side and loops for two rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce

from torchmemlint.flow.fact.reading import Reading
from torchmemlint.flow.fact.versions import State, joined
from torchmemlint.flow.ir import ops
from torchmemlint.flow.ir.control import Break, Continue, For, If, Raise, Return, Try, While, With
from torchmemlint.flow.ir.ops import Op
from torchmemlint.flow.ir.places import Temp
from torchmemlint.knowledge.contracts import Contracts

_ROUNDS = 2
_SWITCH = "training"


def _met(*ways: State | None) -> State | None:
    """Return what holds where ways meet."""
    return reduce(joined, ways)


class Ways:
    """Goes all ways through a function; what operations do is left to subclasses."""

    def __init__(self, reading: Reading, known: Contracts) -> None:
        self.reading = reading
        self.loops: tuple[Op, ...] = ()  # around the place that has been come to, outer ones first
        self._known = known
        self._left: list[tuple[list[State], list[State]]] = []  # of each loop: where it was left, and begun again
        decorators = reading.function.decorators
        self._state: State | None = State(off=any(decorator.name in known.off for decorator in decorators))

    @property
    def state(self) -> State:
        """What holds at the place that has been come to."""
        assert self._state is not None
        return self._state

    def run(self, block: Iterable[Op]) -> None:
        """Go through a block, up to where it is left."""
        for op in block:
            if self._state is None:
                return
            match op:
                case If():
                    self._if(op)
                case For():
                    self.iterate(op)
                case While():
                    self.repeat(op, lambda op=op: self.run(op.head), op.body, op.orelse)  # type: ignore[misc]
                case Try():
                    self._try(op)
                case With():
                    self._with(op)
                case Break() | Continue():
                    self._leave(op)
                case Return() | Raise():
                    self.step(op)
                    self._state = None
                case _:
                    self.step(op)

    def step(self, op: Op) -> None:
        """Go past an operation without blocks."""

    def iterate(self, op: For) -> None:
        """Go through a loop over something."""

    def repeat(self, op: Op, begin: Callable[[], None], body: list[Op], orelse: list[Op]) -> None:
        """Go through the rounds of a loop, which may have none."""
        out: State | None = self.state.copy()
        left, again = list[State](), list[State]()
        self.loops = (*self.loops, op)
        self._left.append((left, again))
        for _ in range(_ROUNDS):
            if self._state is None:
                break
            begin()
            self.run(body)
            self._state = _met(*again, self._state)
            again.clear()
            out = joined(out, self._state)
        self._left.pop()
        self.loops = self.loops[:-1]
        self._state = _met(*left, self._branch(out, orelse))

    def _branch(self, start: State | None, block: list[Op]) -> State | None:
        """Go through a block. The state that it starts from is changed."""
        self._state = start
        self.run(block)
        return self._state

    def _if(self, op: If) -> None:
        other = self.state
        start = other.copy()
        ends = []
        for begin, block, holds in ((start, op.then, True), (other, op.orelse, False)):
            begin.evaluating = begin.evaluating or self._is_evaluating(op.test, holds)
            ends.append(self._branch(begin, block))
        self._state = joined(*ends)

    def _is_evaluating(self, test: Temp, holds: bool) -> bool:
        """Is the module known not to be trained where a test holds, or does not?"""
        match self.reading.made.get(test):
            case ops.GetAttribute(base=base, name=name) if name == _SWITCH:
                return not holds and self.reading.is_self(base)
            case ops.Compare(operator="not", operands=(inner,)):
                return self._is_evaluating(inner, not holds)
            case ops.Choose(operator=operator, operands=operands) if holds is (operator == "and"):
                return any(self._is_evaluating(operand, holds) for operand in operands)
        return False

    def _leave(self, op: Break | Continue) -> None:
        if self._left:
            self._left[-1][0 if type(op) is Break else 1].append(self.state)
        self._state = None

    def _try(self, op: Try) -> None:
        start = self.state
        done = self._branch(start.copy(), op.body)
        failed = joined(start, done) or start
        ends = [self._branch(done, op.orelse)]
        ends += [self._branch(failed.copy(), handler.body) for handler in op.handlers]
        end = _met(*ends)
        self._state = self._branch(end if end is not None else failed, op.final)
        if end is None:
            self._state = None

    def _with(self, op: With) -> None:
        outer = self.state.off
        for context in op.contexts:
            made = self.reading.made.get(context)
            name = self.reading.called(made) if isinstance(made, ops.Call | ops.CallMethod) else ""
            if name in self._known.off:
                self.state.off = True
            elif name in self._known.on:
                self.state.off = False
        self.run(op.body)
        if self._state is not None:
            self._state.off = outer
