"""The one table that binds actual arguments to formal parameters, with `*` and `**` on both sides."""

from __future__ import annotations

from torchmemlint.flow.domain.arguments import Arguments
from torchmemlint.flow.domain.frame import Frame
from torchmemlint.flow.domain.heap import ELEMENT, State, load, visible
from torchmemlint.flow.domain.kinds import Kind, Special
from torchmemlint.flow.domain.refs import Behind, Code, Input, Object, Point, Ref
from torchmemlint.flow.domain.values import NOTHING, SOME, UNKNOWN, Value, join, join_all, of, symbol
from torchmemlint.flow.engine import conditions
from torchmemlint.flow.ir.ops import Function, Parameter, Passing
from torchmemlint.flow.models import containers

Binding = dict[Ref, Value]
Known = tuple[tuple[str, object], ...]  # parameters, and variables of the function around, whose constants are known


def bind(frame: Frame, state: State, code: Code, receiver: Ref | None, arguments: Arguments, point: Point) -> Binding:
    """Return what each parameter of a function is given; its enclosing frame, too."""
    function = code.function
    positional = list(arguments.positional)
    if receiver is not None:
        positional.insert(0, of(receiver))
    named = dict(arguments.named)
    spread: Value | None = None
    further = 0  # items of that which parameters have taken
    if arguments.star is not None:
        items = containers.written_out(state, arguments.star)
        if items is not None:
            positional += items
        else:
            spread = frame.machine.iterate(frame, state, arguments.star, point)
    rest: Value | None = None
    if arguments.stars is not None:
        rest = _spread_names(state, arguments.stars, named)
    bound: Binding = {Input.of(function, Special.OUTER): of(code.frame)}
    position = 0
    left: list[Parameter] = []
    for parameter in function.parameters:
        formal = Input.of(function, parameter.name)
        if parameter.passing is Passing.STAR:
            bound[formal] = _rest_tuple(state, positional[position:], spread, parameter, point)
            position = len(positional)
        elif parameter.passing is Passing.STARS:
            bound[formal] = _rest_dict(state, named, rest, parameter, point)
        elif parameter.passing is Passing.POSITIONAL and position < len(positional):
            bound[formal] = positional[position]
            position += 1
        elif parameter.name in named:
            bound[formal] = named.pop(parameter.name)
        elif spread is not None and parameter.passing is Passing.POSITIONAL:
            bound[formal] = _item(spread, further)
            further += 1
        elif rest is not None and rest is not NOTHING:
            bound[formal] = _under(frame, state, code, parameter, arguments.stars, rest)
        else:
            bound[formal] = frame.machine.default(state, code, parameter)
            left.append(parameter)
    if not all(parameter.has_default for parameter in left):  # by a decorator, a configuration gives what is left out
        bound.update((Input.of(function, parameter.name), UNKNOWN) for parameter in left)
    return bound


def _item(spread: Value, number: int) -> Value:
    """Return what a parameter is given of `*args`: of a row that only a caller knows, each another item."""
    if len(spread.refs) == 1:
        (held,) = spread.refs
        if type(held) is Behind and held.key is ELEMENT and type(held.base) is Input:
            return symbol(Behind.of(held.base, number))
    return spread


def _under(frame: Frame, state: State, code: Code, parameter: Parameter, stars: Value | None, rest: Value) -> Value:
    """Return what a spread dict may give a parameter: of one that a caller knows, what stands under its name."""
    if stars is None or stars.open or not stars.refs or not all(r.symbolic for r in stars.refs):
        return rest
    entry = join_all(load(state, r, parameter.name) or UNKNOWN for r in stars.each())
    return join(entry, frame.machine.default(state, code, parameter)) if parameter.has_default else entry


def constants(function: Function, bound: Binding, state: State) -> Known:
    """Return the constants that tests of a function depend on, as far as they are known."""
    known: list[tuple[str, object]] = []
    for name in sorted(function.tested):
        value = bound.get(Input.of(function, name), UNKNOWN)
        if value.known and isinstance(value.constant, bool | str | type(None)):
            known.append((name, value.constant))
        elif conditions.is_something(value):
            known.append((name, SOME))
    around = bound.get(Input.of(function, Special.OUTER), UNKNOWN).refs if function.around else ()
    for holder in around if len(around) == 1 else ():
        for name in sorted(function.around):
            held = state.heap.get(holder, name)
            if held is not None and held.known and isinstance(held.constant, bool | str):
                known.append((name, held.constant))
    return tuple(known)


def _spread_names(state: State, value: Value, named: dict[str, Value]) -> Value:
    """Spread a dict over names; return what stands under keys that are not known."""
    rest = UNKNOWN if value.open or not value.refs else NOTHING
    for holder in value.each():
        for key, held in visible(state.heap.edges(holder)):
            if isinstance(key, str):
                named.setdefault(key, held)
        seen = holder.symbolic or (type(holder) is Object and holder.kind is Kind.DICT)
        rest = join(rest, load(state, holder, ELEMENT) or (NOTHING if seen else UNKNOWN))
    return rest


def _rest_tuple(state: State, values: list[Value], spread: Value | None, parameter: Parameter, point: Point) -> Value:
    made = Object.of(Kind.TUPLE, point.site, point.context, parameter.name)
    state.heap.drop(made)
    for number, value in enumerate(values):
        state.heap.put(made, number, value)
    if spread is not None:
        state.heap.put(made, ELEMENT, spread)
    return of(made)


def _rest_dict(state: State, named: dict[str, Value], rest: Value | None, parameter: Parameter, point: Point) -> Value:
    made = Object.of(Kind.DICT, point.site, point.context, parameter.name)
    state.heap.drop(made)
    for name, value in named.items():
        state.heap.put(made, name, value)
    if rest is not None and rest is not NOTHING:
        state.heap.put(made, ELEMENT, rest)
    return of(made)
