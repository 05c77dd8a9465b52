"""Transfer functions: one for each operation but those of control flow, from a state to the state after it."""

from __future__ import annotations

from torchmemlint.flow.domain.arguments import Arguments
from torchmemlint.flow.domain.frame import CallSite, Frame, Transfer
from torchmemlint.flow.domain.heap import BOXES, ELEMENT, Mode, State, graph_of, reached
from torchmemlint.flow.domain.kinds import Kind, Special
from torchmemlint.flow.domain.manners import Reading, Remark
from torchmemlint.flow.domain.memory import begin, changed_in_place, computed, discrete, escape, write
from torchmemlint.flow.domain.refs import ClassRef, Code, Counted, Input, Key, Object, Point, Ref, SuperRef
from torchmemlint.flow.domain.values import (
    FEW,
    NO_CONSTANT,
    NO_SOURCES,
    NOTHING,
    PLAIN,
    TRUE,
    UNKNOWN,
    Pattern,
    Value,
    constant,
    join,
    join_all,
    joined_texts,
    of,
    one_tensor,
    symbol,
    texts_of,
)
from torchmemlint.flow.engine import access, calls, conditions, instances
from torchmemlint.flow.engine.narrowing import narrow
from torchmemlint.flow.engine.places import PLACES, ask_for_gradients, detach_around, key_of, store
from torchmemlint.flow.ir import ops, reaching
from torchmemlint.flow.ir.control import Await, Check, Yield
from torchmemlint.flow.ir.defuse import of_gradient
from torchmemlint.flow.ir.places import NO_TEMP, Argument, ItemPlace, Spread
from torchmemlint.flow.models import columns, containers, guards, optimizers, tensors

_MADE = {"list": Kind.LIST, "tuple": Kind.TUPLE, "set": Kind.LIST, "dict": Kind.DICT}


def value_of(frame: Frame, number: int) -> Value:
    """Return a temporary."""
    return frame.temps[number] if number != NO_TEMP else NOTHING


# Computing.

_DUNDERS = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "truediv",
    "@": "matmul",
    "|": "or",
    "<<": "lshift",
    ">>": "rshift",
}


def _operate(frame: Frame, state: State, op: ops.Operate) -> None:
    values = [frame.temps[t] for t in op.operands]
    point = frame.at(op)
    result = _operated(frame, state, op, values, point)
    frame.temps[op.dst] = result
    if op.place is not None and result is not values[0]:
        store(frame, state, op.place, result, point)


def _operated(frame: Frame, state: State, op: ops.Operate, values: list[Value], point: Point) -> Value:
    overloaded = _overloaded(frame, state, op, values, point)
    if overloaded is not None:
        return overloaded
    if len(values) == 2 and op.operator in ("+", "|"):
        boxes = [any(type(r) is Object and r.kind in BOXES for r in value.refs) for value in values]
        if all(boxes) or (any(boxes) and (op.place is not None or all(v.refs for v in values))):
            if op.operator == "|":
                return containers.merged(CallSite(frame, state, point, Arguments()), values, op.place is not None)
            return containers.concatenated(frame, state, values, op.place is not None, point)
    if len(values) == 2 and op.operator == "*":
        for value in values:
            if any(type(r) is Object and r.kind in (Kind.LIST, Kind.TUPLE) for r in value.refs):
                return value  # [x] * n
        counted = next((value for value in values if any(type(r) is Counted for r in value.refs)), None)
        if counted is not None and any(type(v.constant) is int and v.constant > 0 for v in values):
            return counted  # as many, or more
    if all(value.known for value in values) and op.place is None and op.operator == "-" and len(values) == 1:
        held = values[0].constant
        return constant(-held) if isinstance(held, int | float) else PLAIN
    sources = frozenset[Ref]()
    for value in values:
        sources |= graph_of(state, value)
    if op.operator == "+" and any(isinstance(value.constant, str | Pattern) for value in values):
        frame.read(sources, Reading.TEXT)
        return joined_texts(values)
    known = FEW if _is_remainder(op.operator, values) else NO_CONSTANT
    if not sources:
        return Value(constant=known, open=any(v.open or v.refs for v in values))
    result = computed(frame, state, sources, point, sums=_sums(frame, op.operator, values))
    if op.place is not None and values[0].refs and result:
        changed_in_place(frame, state, values[0], result - values[0].graph, point, frame.kind(values[1]))
    are_tensors = [frame.is_tensor(value) for value in values]
    if any(are_tensors[-1:] if op.place is not None else are_tensors):
        return one_tensor(result)
    return Value(graph=result, constant=known)


def _is_remainder(operator: str, operands: list[Value]) -> bool:
    """Is it a number below another one: `n % size`, `n & 7`? A text before `%` is formatted."""
    if operator == "&":
        return any(type(value.constant) is int for value in operands)
    return operator == "%" and not (texts_of(operands[0]) or isinstance(operands[0].constant, Pattern))


def _sums(frame: Frame, operator: str, operands: list[Value]) -> bool:
    """Is what an operator gives a weighted sum of its operands, a quotient one of the first?"""
    if operator == "/":
        frame.bend(operands[1].graph)
    return operator in ("+", "-", "/") or (operator == "*" and any(value.known for value in operands))


def _overloaded(frame: Frame, state: State, op: ops.Operate, values: list[Value], point: Point) -> Value | None:
    """Return what a class's own operator gives; None where there is none."""
    name = _DUNDERS.get(op.operator)
    if name is None or len(values) != 2:
        return None
    for receiver, other, methods in (
        (values[0], values[1], ((f"__i{name}__",) if op.place is not None else ()) + (f"__{name}__",)),
        (values[1], values[0], (f"__r{name}__",)),
    ):
        for r in receiver.each():
            if r.symbolic and receiver is values[0] and not frame.entry and methods[0] in frame.machine.index.operators:
                return calls.call_method(frame, state, receiver, methods[0], Arguments([other]), point)
            if type(r) is Object and r.kind is Kind.INSTANCE:
                for method in methods:
                    found = instances.member(frame, state, r, method)
                    if found is not None:
                        return calls.call(frame, state, found, Arguments([other]), point)
    return None


def _read_all(frame: Frame, state: State, temps: tuple[int, ...]) -> None:
    for t in temps:
        value = frame.temps[t]
        if value.graph or value.refs:
            frame.read(reached(state, value), Reading.NUMBER)


_IDENTITY = frozenset({"is", "is not", "in", "not in"})
_TRUTH = _IDENTITY | {"not"}  # what gives no tensor


def _compare(frame: Frame, state: State, op: ops.Compare) -> None:
    if op.operator not in _IDENTITY:
        _read_all(frame, state, op.operands)
    values = [frame.temps[t] for t in op.operands]
    result = conditions.compared(state, op.operator, values)
    if result is PLAIN and state.mode is Mode.OFF and op.operator not in _TRUTH:
        result = discrete(frame, state, NO_SOURCES.union(*(graph_of(state, value) for value in values)), frame.at(op))
    frame.temps[op.dst] = result


def _choose(frame: Frame, state: State, op: ops.Choose) -> None:
    values = conditions.chosen(state, op.operator, [frame.temps[t] for t in op.operands])
    frame.temps[op.dst] = join_all(values)
    for operand in op.operands[:-1]:
        if all(frame.temps[operand] is not value for value in values):
            guards.drop(frame, operand, Remark.PASSED_MODE)


def _format(frame: Frame, state: State, op: ops.Format) -> None:
    _read_all(frame, state, op.operands)
    first, *texts = op.template.split(ops.GAP)
    parts = [constant(first)]
    for operand, text in zip(op.operands, texts, strict=False):
        parts += [frame.temps[operand], constant(text)]
    frame.temps[op.dst] = joined_texts(parts) if len(texts) == len(op.operands) else PLAIN


def _check(frame: Frame, state: State, op: Check) -> None:
    _read_all(frame, state, (op.test,))
    narrow(frame, state, op.narrowings, True)


# Calls.


def arguments_of(frame: Frame, given: tuple[Argument, ...]) -> Arguments:
    """Return the values of actual arguments."""
    result = Arguments()
    for argument in given:
        value = frame.temps[argument.temp]
        if argument.spread is Spread.PLAIN:
            result.positional.append(value)
        elif argument.spread is Spread.NAMED:
            result.named[argument.name] = value
        elif argument.spread is Spread.STAR:
            result.star = value if result.star is None else join(result.star, value)
        else:
            result.stars = value if result.stars is None else join(result.stars, value)
    return result


def _call(frame: Frame, state: State, op: ops.Call) -> None:
    frame.temps[op.dst] = calls.call(
        frame, state, frame.temps[op.callee], arguments_of(frame, op.arguments), frame.at(op)
    )
    if op.dropped:
        guards.drop(frame, op.dst)


def _call_method(frame: Frame, state: State, op: ops.CallMethod) -> None:
    base, point = frame.temps[op.base], frame.at(op)
    value = calls.call_method(frame, state, base, op.name, arguments_of(frame, op.arguments), point)
    frame.temps[op.dst] = value
    if op.dropped:
        guards.drop(frame, op.dst)
    zeroed = of_gradient(op) if op.name == "zero_" or (op.name == "fill_" and _is_given_zero(frame, op)) else None
    if zeroed is not None:
        optimizers.step(frame, frame.temps[zeroed], "zero_grad", point)
    if op.place is not None and tensors.works_in_place(base, op.name):
        tensors.change_in_place(frame, state, base, value, op.name, point)
        store(frame, state, op.place, Value(base.refs, value.graph, open=base.open), point)
        if op.name == "detach_" and isinstance(op.place, ItemPlace):
            detach_around(frame, state, op.place.base, point)
    elif op.name == "requires_grad_":
        flag = arguments_of(frame, op.arguments).get(0, "requires_grad")
        ask_for_gradients(frame, state, op.place, base, TRUE if flag is None else flag, point)


def _is_given_zero(frame: Frame, op: ops.CallMethod) -> bool:
    return any(frame.temps[argument.temp].constant == 0 for argument in op.arguments)


def _super(frame: Frame, state: State, op: ops.Super) -> None:
    cls, function = frame.function.cls, frame.function
    result = NOTHING
    if cls is not None and function.parameters:
        first = function.parameters[0].name
        receiver = state.variables.get(first)
        if receiver is None:
            receiver = state.heap.get(frame.own, first) or UNKNOWN
        for r in receiver.each():
            result = join(result, of(SuperRef.of(cls, r)))
    frame.temps[op.dst] = result if result.refs else UNKNOWN


def _make(frame: Frame, state: State, op: ops.Make) -> None:
    point = frame.at(op)
    made = Object.of(_MADE[op.kind], op, frame.context)
    box = begin(frame, state, made, point)
    spread = any(entry.spread is not Spread.PLAIN for entry in op.entries)
    marks = frozenset[Ref]()
    number = 0
    for entry in op.entries:
        value = frame.temps[entry.temp]
        if entry.spread is not Spread.PLAIN:
            marks |= containers.through(value)
        if entry.spread is Spread.STARS:
            containers.merge(CallSite(frame, state, point, Arguments()), box, value)
        elif entry.spread is Spread.STAR:
            items = containers.written_out(state, value)
            if items is None or number < 0:
                access.consume(frame, state, value, box, point)
                number = -1  # from here on it is not known which index an item has
            else:
                for item in items:
                    state.heap.put(made, number, item)
                    number += 1
        elif entry.key is not None:
            state.heap.add(made, key_of(frame, entry.key), value)
        elif op.kind == "set" or (spread and number < 0):
            write(frame, state, box, ELEMENT, value, point)
        else:
            state.heap.put(made, number, value)
            number += 1
    frame.temps[op.dst] = Value(box.refs, marks) if marks else box


def _collect(frame: Frame, state: State, op: ops.Collect) -> None:
    key = ELEMENT if op.key is None else key_of(frame, op.key)
    write(frame, state, frame.temps[op.box], key, frame.temps[op.src], frame.at(op), weak=op.key is None)
    if op.key is None and frame.loops and frame.loops[-1] in frame.bounded:
        containers.shorten(state, frame.temps[op.box])


def _unpack(frame: Frame, state: State, op: ops.Unpack) -> None:
    value, point = frame.temps[op.src], frame.at(op)
    lazily = any(type(r) is Object and r.kind in (Kind.GENERATOR, Kind.LAZY) for r in value.refs)
    if lazily and op.star < 0 and columns.turns_round(state, value):
        for number, target in enumerate(op.targets):
            frame.temps[target] = columns.nth(frame, state, value, number, point)
        return
    if lazily:
        element = access.iterate(frame, state, value, point)
        for target in op.targets:
            frame.temps[target] = element
        return
    for number, target in enumerate(op.targets):
        if number == op.star:
            rest = Object.of(Kind.LIST, op, frame.context)
            state.heap.drop(rest)
            state.heap.put(rest, ELEMENT, access.item(frame, state, value, ELEMENT, point))
            frame.temps[target] = of(rest)
        else:
            key: Key = number if op.star < 0 or number < op.star else ELEMENT
            frame.temps[target] = access.item(frame, state, value, key, point)


def _define(frame: Frame, state: State, op: ops.Define) -> None:
    code = Code.of(op.function, frame.own)
    for name, default in op.defaults:
        state.heap.put(code, ("default " + name, 0), frame.temps[default])
    frame.temps[op.dst] = of(code)


def _define_class(frame: Frame, state: State, op: ops.DefineClass) -> None:
    made = ClassRef.of(op.cls, frame.own)
    for name, member in op.members:
        state.heap.put(made, name, frame.temps[member])
    instances.name_members(frame, state, made, frame.at(op))
    frame.temps[op.dst] = of(made)


def _await(frame: Frame, state: State, op: Await) -> None:
    frame.temps[op.dst] = frame.temps[op.src]


def _yield(frame: Frame, state: State, op: Yield) -> None:
    if op.many:
        value = access.consume(frame, state, frame.temps[op.src], NOTHING, frame.at(op))
    else:
        value = value_of(frame, op.src)
    held = [state.variables[name] for name in reaching.held(frame.function) if name in state.variables]
    escape(frame, state, held, frame.at(op))
    frame.yielded = join(frame.yielded, value)
    frame.yield_mode = state.mode
    frame.temps[op.dst] = symbol(Input.of(frame.function, Special.SENT))


SIMPLE: dict[type[ops.Op], Transfer] = {
    **PLACES,
    ops.Operate: _operate,
    ops.Compare: _compare,
    ops.Choose: _choose,
    ops.Format: _format,
    Check: _check,
    ops.Call: _call,
    ops.CallMethod: _call_method,
    ops.Super: _super,
    ops.Make: _make,
    ops.Collect: _collect,
    ops.Unpack: _unpack,
    ops.Define: _define,
    ops.DefineClass: _define_class,
    Await: _await,
    Yield: _yield,
}
