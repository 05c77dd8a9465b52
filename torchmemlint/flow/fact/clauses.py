"""Clauses of `except`: what is done in them where memory ran out, and where they keep the exception."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.flow.domain.refs import Code, External
from torchmemlint.flow.ir import ops
from torchmemlint.flow.ir.blocks import blocks, layout_of, operations
from torchmemlint.flow.ir.control import Break, Continue, Handler, If, Raise, Return, Try
from torchmemlint.flow.ir.places import AttributePlace, Temp
from torchmemlint.flow.names.index import Index
from torchmemlint.immutable import immutable
from torchmemlint.knowledge import failures

_ERROR = "OutOfMemoryError"
_ABOVE = frozenset({"RuntimeError", "Exception", "BaseException"})  # errors of other kinds are none of memory
_FREEING = "empty_cache"  # who calls it in a clause says that memory ran out
_CLEARING = frozenset({"clear_frames", "with_traceback"})
_TRACEBACK = "__traceback__"
_ADDING = frozenset({"append", "appendleft", "add", "insert", "put", "put_nowait"})
_HOST = "cpu"
_LEAVING = (Raise, Return, Continue, Break)


@immutable()
class Clause:
    """One clause, with what it is for: operations of the same function."""

    body: frozenset[ops.Op]  # of the `try`
    out_of_memory: frozenset[ops.Op]  # what is done where memory ran out
    on_host: bool  # is it done on the host?
    keeping: tuple[ops.Op, ...]  # what keeps the exception beyond the clause


def clauses(index: Index, function: ops.Function) -> Iterator[Clause]:
    """Yield the clauses of a function that do not let go of the frames."""
    if not function.handles:
        return
    layout = layout_of(function)
    for attempt in (op for op in operations(function.body) if isinstance(op, Try)):
        is_repeated = any(True for _ in layout.loops(attempt))
        body = frozenset(operations(attempt.body))
        for handler in attempt.handlers:
            reader = _Reader(index, function, handler)
            if reader.mentioned.isdisjoint({*_CLEARING, _TRACEBACK}):
                out = frozenset(reader.where_memory_ran_out())
                yield Clause(body, out, any(map(_is_host, out)), tuple(reader.keeping(is_repeated)))


def _is_host(op: ops.Op) -> bool:
    return (type(op) is ops.CallMethod and op.name == _HOST) or (type(op) is ops.Constant and op.value == _HOST)


class _Reader:
    """Reads one clause."""

    def __init__(self, index: Index, function: ops.Function, handler: Handler) -> None:
        self._index, self._function, self._handler = index, function, handler
        self._ops = list(operations(handler.body))
        self._made = {dst: op for op in self._ops if (dst := getattr(op, "dst", None)) is not None}
        self._bound = {op.name.text: op.src for op in self._ops if type(op) is ops.Bind}
        self.mentioned = {name for op in self._ops if (name := _name(op))}

    # What is done where memory ran out.

    def where_memory_ran_out(self) -> Iterator[ops.Op]:
        """Yield what is done where memory is known to have run out."""
        kinds = {kind.rpartition(".")[2] for kind in self._handler.types}
        freed = _FREEING in self.mentioned and (not kinds or not kinds.isdisjoint(_ABOVE))
        return self._out_of_memory(self._handler.body, _ERROR in kinds or freed)

    def _out_of_memory(self, block: list[ops.Op], is_known: bool) -> Iterator[ops.Op]:
        for op in block:
            says = self._says(op.test) if type(op) is If else None
            if type(op) is not If or says is None:
                if is_known:
                    yield op
                for inner in blocks(op):
                    yield from self._out_of_memory(inner, is_known)
                continue
            so, not_so = (op.then, op.orelse) if says else (op.orelse, op.then)
            yield from self._out_of_memory(so, True)
            if _leaves(so):
                return
            is_known = is_known or _leaves(not_so)

    def _says(self, temp: Temp) -> bool | None:
        """Does a test hold where memory ran out, or only elsewhere? None if it is about something else."""
        op = self._made.get(temp)
        match op:
            case ops.Compare(operator="not", operands=(inner,)):
                says = self._says(inner)
                return None if says is None else not says
            case ops.Compare():
                return op.operator != "not in" if any(map(self._is_about, op.operands)) else None
            case ops.Choose():
                return next((says for operand in op.operands if (says := self._says(operand)) is not None), None)
            case ops.Load() if op.name.text in self._bound:
                return self._says(self._bound[op.name.text])
            case ops.Call() | ops.CallMethod():
                return True if self._is_about(temp) else None
        return None

    def _is_about(self, temp: Temp) -> bool:
        """Does what is computed there speak of memory that ran out?"""
        op = self._made.get(temp)
        match op:
            case ops.Constant(value=str() as text):
                return failures.speaks_of_memory(text)
            case ops.Load() | ops.GetAttribute():
                return _name(op) == _ERROR
            case ops.Make():
                return any(self._is_about(entry.temp) for entry in op.entries)
            case ops.Call() | ops.CallMethod():
                given = (argument.temp for argument in op.arguments)
                return any(map(self._is_about, given)) or self._asks(op)
        return False

    def _asks(self, call: ops.Call | ops.CallMethod) -> bool:
        """Is a function asked that tells whether memory ran out?"""
        callee = self._made.get(call.callee) if type(call) is ops.Call else None
        found = self._index.in_unit(self._function.unit, callee.name.text) if type(callee) is ops.Load else None
        functions = [r.function for r in found.refs if type(r) is Code] if found is not None else []
        if type(call) is ops.CallMethod and self._function.cls is not None:
            method = self._index.method(self._function.cls, call.name)
            functions += [method] if method is not None else []
        named = (r.qualified for r in found.refs if type(r) is External) if found is not None else ()
        return any(map(speaks_of_memory, functions)) or not failures.PREDICATES.isdisjoint(named)

    # Where the exception is kept.

    def keeping(self, is_repeated: bool) -> Iterator[ops.Op]:
        """Yield what keeps the exception beyond the clause: over the iterations of a loop, or in an attribute."""
        held = {self._handler.caught}
        name = self._handler.name.text if self._handler.name is not None else ""
        for op in self._ops:
            match op:
                case ops.Load() if name and op.name.text == name:
                    held.add(op.dst)
                case ops.Move() if op.src in held:
                    held.add(op.dst)
                case ops.Make() if any(entry.temp in held for entry in op.entries):
                    held.add(op.dst)
                case ops.SetAttribute() if op.src in held:
                    yield op
                case ops.SetItem() if op.src in held and (is_repeated or type(op.place) is AttributePlace):
                    yield op
                case ops.CallMethod() if op.name in _ADDING and any(argument.temp in held for argument in op.arguments):
                    if is_repeated or type(self._made.get(op.base)) is ops.GetAttribute:
                        yield op
                case ops.Bind() if op.src in held and op.name.text != name and is_repeated:
                    if not any(type(last) in (Return, Break, Raise) for last in self._handler.body[-1:]):
                        yield op


def _leaves(block: list[ops.Op]) -> bool:
    return bool(block) and type(block[-1]) in _LEAVING


def _name(op: ops.Op | None) -> str:
    match op:
        case ops.Load():
            return op.name.text
        case ops.GetAttribute() | ops.CallMethod() | ops.SetAttribute():
            return op.name
    return ""


def speaks_of_memory(function: ops.Function) -> bool:
    """Does a function have to do with memory that ran out?"""
    if _ERROR in function.mentions:
        return True
    constants = (op.value for op in operations(function.body) if type(op) is ops.Constant)
    return any(isinstance(value, str) and failures.speaks_of_memory(value) for value in constants)
