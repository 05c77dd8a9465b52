"""The way to an object in words: the steps from a name to it, as the source would write them."""

from __future__ import annotations

import functools
import sys
import types
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from torchmemlint.immutable import immutable
from torchmemlint.runtime.internals import graph_of
from torchmemlint.runtime.ledger import Site


@immutable()
class Name:
    """What a way begins with: a name that the program's source mentions."""

    text: str
    kind: str  # `local`, `global`, `class`, `library`
    site: Site  # the frame's line, or the module's or class's first

    def __str__(self) -> str:
        return self.text


@immutable()
class Way:
    """How a program gets at an object.

    `text` is an expression as the source would write it, from the last name on: for a closure, its variable.
    `kind` says what the last name is: `local`, `global`, `class attribute`, `attribute`, `closure`, `cache`,
    `generator` or `library`. `function` is the function that it is a local or a closure of.
    """

    text: str
    kind: str
    leaf: str
    site: Site
    function: str = ""
    of_type: str = ""
    key: str | None = None  # of the leaf, where it is an element of a dictionary: `'loss'` of `history['loss']`
    owner: str | None = None  # the name before, where the leaf is an attribute


def way(name: Name, chain: Sequence[Any]) -> Way:
    """The way along a chain of objects, of which each refers to the next and the first has a name."""
    function = name.site.function if name.kind in ("local", "library") else ""
    kind = "class attribute" if name.kind == "class" else name.kind
    found = Way(name.text, kind, name.text, name.site, function)
    position = 1
    while position < len(chain):
        parent, child = chain[position - 1], chain[position]
        after = chain[position + 1] if position + 1 < len(chain) else None
        if type(child) is dict and after is not None and _is_space(parent, child, after):
            position += 1  # an object's attributes: the object and the dictionary are one step
            found = _attribute(found, parent, _key_of(child, after))
        elif isinstance(parent, types.FunctionType) and after is not None and child is not parent.__dict__:
            position += 1  # its closure or its defaults, and one of them
            found = _in_function(found, parent, after)
        else:
            found = _step(found, parent, child)
        position += 1
    return _of_cache(found, chain[-1]) if isinstance(chain[-1], functools._lru_cache_wrapper) else found


def _of_cache(way: Way, cached: Any) -> Way:
    code = getattr(cached.__wrapped__, "__code__", None)
    site = way.site if code is None else Site(code.co_filename, code.co_firstlineno, cached.__qualname__)
    return Way(f"the cache of {cached.__qualname__}()", "cache", cached.__name__, site, cached.__qualname__)


def values_of(frame: types.FrameType) -> list[tuple[str, Any]]:
    """A function's locals, without leaving them behind.

    Before Python 3.13 a frame keeps the dictionary that it is asked for, and so whatever the locals were then.
    """
    space = frame.f_locals
    values = list(space.items())
    if sys.version_info < (3, 13) and sys.getrefcount(space) <= 3:  # the frame's, this function's, the argument
        space.clear()
    return values


# --- the steps of a way, in words


def attribute_of(owner: Any, value: Any, below: Any = None) -> str | None:
    """The attribute by which an object has a value; None where it has none such (a container, a function).

    Where the value is the dictionary of the object's attributes, the one that has what is `below`.
    """
    if isinstance(owner, dict | list | tuple | set | types.FunctionType | types.CellType | types.MethodType):
        return None
    space = _own_dictionary(owner)
    name = "?" if type(space) is not dict else _key_of(space, below if space is value else value)
    if name == "?":
        name = next((slot for slot in _slots(type(owner)) if getattr(owner, slot, None) is value), "?")
    return None if name == "?" else name


def _own_dictionary(one: Any) -> Any:
    try:
        return object.__getattribute__(one, "__dict__")
    except (AttributeError, TypeError):
        return None


def _is_space(one: Any, space: Any, value: Any) -> bool:
    """Whether a dictionary is that of an object's, or a class's, attributes."""
    if isinstance(one, type):
        return any(value is other for other in vars(one).values())
    return _own_dictionary(one) is space


def _key_of(space: Any, value: Any) -> str:
    return next((str(key) for key, one in list(space.items()) if one is value), "?")


def in_cycle(owner: Any, name: str) -> Way:
    """The way to what only an object in a reference cycle has."""
    cls = type(owner)
    path = getattr(sys.modules.get(cls.__module__), "__file__", None) or "?"
    return Way(f"{cls.__qualname__}.{name}", "cycle", name, Site(path, 1, cls.__qualname__), "", cls.__qualname__)


def _attribute(way: Way, owner: Any, name: str) -> Way:
    kind = "class attribute" if isinstance(owner, type) else "attribute"
    cls = owner if isinstance(owner, type) else type(owner)
    path = getattr(sys.modules.get(cls.__module__), "__file__", None)
    site = way.site if path is None else Site(path, 1, cls.__qualname__)
    return Way(f"{way.text}.{name}", kind, name, site, way.function, cls.__qualname__, owner=way.leaf)


def _element(way: Way, key: str) -> Way:
    first = key if way.text.endswith(way.leaf) else way.key
    return replace(way, text=f"{way.text}[{key}]", key=first)


def _step(way: Way, parent: Any, child: Any) -> Way:
    match parent:
        case dict():
            key = next((key for key, one in list(parent.items()) if one is child), ...)
            return _element(way, _short(key))
        case list() | deque() | tuple():
            for number, one in enumerate(parent):
                if one is child:
                    fields = getattr(type(parent), "_fields", None)
                    return _element(way, str(number)) if fields is None else _attribute(way, parent, fields[number])
        case set() | frozenset():
            return _element(way, "…")
        case types.MethodType():
            return replace(way, text=f"{way.text}.__self__") if child is parent.__self__ else way
        case types.CellType() | types.FunctionType():
            return way
        case types.GeneratorType() | types.CoroutineType() | types.AsyncGeneratorType():
            frame = getattr(parent, "gi_frame", None) or getattr(parent, "cr_frame", None)
            return way if frame is None or frame is child else _in_frame(way, frame, child, "generator")
        case types.FrameType():
            return _in_frame(way, parent, child, "local")
        case types.TracebackType() | BaseException():
            return way
    if isinstance(parent, torch.Tensor) and graph_of(parent) is None and parent.grad is child:
        return _attribute(way, parent, "grad")
    name = attribute_of(parent, child)
    return way if name is None else _attribute(way, parent, name)


def _short(key: object) -> str:
    if isinstance(key, str | int | float | bool):
        return repr(key)
    return "…"


def _slots(kind: type) -> Iterator[str]:
    for base in kind.__mro__:
        yield from (name for name, value in vars(base).items() if isinstance(value, types.MemberDescriptorType))


def _in_function(way: Way, function: types.FunctionType, part: Any) -> Way:
    code = function.__code__
    site = Site(code.co_filename, code.co_firstlineno, function.__qualname__)
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        if cell is part:
            return Way(name, "closure", name, site, function.__qualname__)
    defaults = function.__defaults__ or ()
    positional = code.co_varnames[: code.co_argcount]
    named = (*zip(positional[len(positional) - len(defaults) :], defaults, strict=True),)
    for name, value in (*named, *(function.__kwdefaults__ or {}).items()):
        if value is part:
            return Way(name, "default", name, site, function.__qualname__)
    return way


def _in_frame(way: Way, frame: types.FrameType, child: Any, kind: str) -> Way:
    code = frame.f_code
    function = getattr(code, "co_qualname", code.co_name)
    name = next((name for name, one in values_of(frame) if one is child), None)
    if name is None:
        return way
    return Way(name, kind, name, Site(code.co_filename, frame.f_lineno or 0, function), function)
