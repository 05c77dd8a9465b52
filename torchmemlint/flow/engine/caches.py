"""Decorators that keep what a function gave: `functools.lru_cache` and its like."""

from __future__ import annotations

from collections.abc import Mapping

from torchmemlint.flow.domain.arguments import Arguments
from torchmemlint.flow.domain.effects import Load, Remember
from torchmemlint.flow.domain.frame import Frame
from torchmemlint.flow.domain.heap import State
from torchmemlint.flow.domain.kinds import Special
from torchmemlint.flow.domain.refs import Code, Input, Point, Ref, Result
from torchmemlint.flow.domain.values import NOTHING, Value, join_all, of, symbol
from torchmemlint.flow.ir.control import Return
from torchmemlint.flow.ir.ops import Decorator, Function

_CACHES = frozenset({"lru_cache", "cache", "memoize", "cached"})
# Those that keep all: `functools.cache` is `lru_cache(maxsize=None)`; those of toolz, cytoolz and funcy fill a dict.
_KEEP_ALL = frozenset("functools.cache toolz.memoize toolz.functoolz.memoize cytoolz.memoize funcy.memoize".split())
_SIZED = frozenset({"functools.lru_cache", "methodtools.lru_cache"})  # of 128 results where no size is given
_OF_PYTHON = frozenset({"functools.lru_cache", "functools.cache"})  # one for all objects of a class
_FEW = 8  # results: so many do not grow


def keeps_results(function: Function) -> bool:
    """Does a decorator keep the results of a function, and more than a few?"""
    for decorator in function.decorators:
        if decorator.name.rpartition(".")[2] in _CACHES:
            return not any(type(a) is int and a <= _FEW for a in decorator.arguments)
    return False


def keeps_all(decorator: Decorator) -> bool:
    """Does a decorator of a library keep the results of a function, and forget none?"""
    return decorator.name in _KEEP_ALL or (decorator.name in _SIZED and None in decorator.arguments[:1])


def cache_of(function: Function) -> Decorator | None:
    """Return the decorator of Python's library that keeps the results of a function, and more than a few."""
    if not keeps_results(function):
        return None
    return next((d for d in function.decorators if d.name in _OF_PYTHON), None)


def remember(frame: Frame, function: Function, bound: Mapping[Ref, Value], point: Point) -> None:
    """Log what a function is given whose cache is Python's own: under that it keeps the result."""
    if cache_of(function) is not None:
        given = {i.name: v for i, v in bound.items() if type(i) is Input and isinstance(i.name, str) and v.refs}
        if given:
            frame.log(Remember(point, function, Arguments(named=given)))


def earlier(frame: Frame, state: State, code: Code, arguments: Arguments, point: Point) -> Value:
    """Return what earlier calls with constants may have kept: such a call may be given that, however it runs itself."""
    given = arguments.all()
    if not keeps_results(code.function) or not all(value.known for value in given):
        return NOTHING
    if frame.entry:
        return state.heap.get(code, Special.CACHED) or NOTHING
    result = Result.of(point.site, point.context, code)
    frame.arise(result)
    frame.log(Load(point, Special.CACHED, of(code), False, state.mode, result))
    return symbol(result)


def keep(frame: Frame, state: State, code: Code, result: Value, arguments: Arguments) -> None:
    """Keep a result and what it was computed from: the function holds them, as long as it lives."""
    body = code.function.body
    returns = [op for op in body if type(op) is Return]
    point = Point(returns[-1] if returns else body[0])
    kept = join_all([result, *arguments.all()])
    frame.machine.write(frame, state, of(code), Special.CACHED, kept, point, True)
