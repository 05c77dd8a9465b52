"""Inputs: what the parameters of an entry are."""

from __future__ import annotations

from torchmemlint.flow.domain.arguments import Arguments
from torchmemlint.flow.domain.frame import Frame
from torchmemlint.flow.domain.heap import State
from torchmemlint.flow.domain.kinds import Kind
from torchmemlint.flow.domain.refs import ClassRef, Code, External, Globals, Input, Object, Point
from torchmemlint.flow.domain.values import Value, of, symbol
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.ir.ops import Class, Function, Parameter, Passing
from torchmemlint.flow.models import settings

_MAKERS = (ClassRef, Code, External)


def given(engine: Engine, state: State, function: Function, skip: int) -> Arguments:
    """Return what the parameters of an entry are: symbols, but for those whose annotation says what they are."""
    result = Arguments()
    for parameter in function.parameters[skip:]:
        value = _annotated(engine, state, function, parameter) or _network(engine, state, function, parameter)
        if value is None:
            value = settings.option(function, parameter.name) or _maker(engine, state, function, parameter)
        elif parameter.has_default:
            value = value._replace(open=True)  # it may be None
        match parameter.passing:
            case Passing.POSITIONAL:
                result.positional.append(value)
            case Passing.ONLY_NAMED:
                result.named[parameter.name] = value
            case Passing.STAR:
                result.star = value
            case Passing.STARS:
                result.stars = value
    return result


def _network(engine: Engine, state: State, function: Function, parameter: Parameter) -> Value | None:
    """Return the network that a call gives which was not followed."""
    kind = engine.given.get(function, {}).get(parameter.name)
    if kind is None or parameter.passing in (Passing.STAR, Passing.STARS):
        return None
    if isinstance(kind, Class):
        return engine.unseen_instance(state, kind, function)
    return of(Object.of(Kind.MODULE, function, (), f"{kind}:{parameter.name}"))


def _maker(engine: Engine, state: State, function: Function, parameter: Parameter) -> Value:
    """Return what a parameter is: the class or function that it is by default, or a symbol for what is given."""
    if parameter.has_default:
        default = engine.default(state, Code.of(function, Globals.of(function.unit.name)), parameter)
        if default.refs and all(type(r) in _MAKERS for r in default.refs):
            return default._replace(open=True)
    return symbol(Input.of(function, parameter.name))


def enter(
    engine: Engine, frame: Frame, state: State, function: Function, callee: Value, skip: int, point: Point
) -> Value:
    """Call an entry with what its parameters are, but for the first `skip`; a generator runs to its end."""
    returned = engine.call(frame, state, callee, given(engine, state, function, skip), point)
    return engine.consume(frame, state, returned, Value(), point) if function.generator else returned


def _annotated(engine: Engine, state: State, function: Function, parameter: Parameter) -> Value | None:
    """Return an object for a parameter that is annotated as a network, or as a loader."""
    if not parameter.annotation or parameter.passing in (Passing.STAR, Passing.STARS):
        return None
    cls = engine.index.find_class(function.unit, parameter.annotation)
    if cls is not None:
        if not engine.index.is_network(cls):
            return None
        return engine.unseen_instance(state, cls, function)
    if parameter.annotation in engine.index.contracts.names("loaders"):
        return of(Object.of(Kind.OPAQUE, function, (), parameter.annotation))
    if engine.index.is_network_name(parameter.annotation):
        return of(Object.of(Kind.MODULE, function, (), f"{parameter.annotation}:{parameter.name}"))
    return None
