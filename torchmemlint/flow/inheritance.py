"""What constructors of base classes in other files leave on the objects of the file's classes."""

from __future__ import annotations

from collections.abc import Iterable

from torchmemlint.flow import construction
from torchmemlint.flow.interpreter import Interpreter
from torchmemlint.flow.program import ClassInfo, Function
from torchmemlint.flow.values import Container, Instance


def construct(it: Interpreter, functions: Iterable[Function]) -> None:
    """Walk the inherited constructors of the classes that methods belong to.

    How layers are made is not looked into, as everywhere in other files; nor are classes that have a constructor of
    their own, which calls its bases'.
    """
    if not it.follows_imports:
        return
    for cls in dict.fromkeys(function.cls for function in functions):
        constructor = cls.method("__init__") if cls is not None else None
        if cls is None or constructor is None or constructor.program is it.main or cls.is_module:
            continue
        _construct(it, cls, constructor)


def _construct(it: Interpreter, cls: ClassInfo, constructor: Function) -> None:
    made = Instance(cls.oid, cls)
    it.steps_beyond = 0
    with construction.constructed(it, made, constructor):
        for slot, value in list(it.state.heap.written()):
            if slot[0] == cls.oid and isinstance(value, Container) and _is_used_elsewhere(it, cls, slot[1]):
                it.state.heap.pop(slot, None)
        it.remember(it.state.heap, everything=False)


def _is_used_elsewhere(it: Interpreter, cls: ClassInfo, attribute: str) -> bool:
    """Does another method of a base in another file mention the attribute? It may empty or differentiate it."""
    return any(
        attribute in method.outline.names
        for ancestor in cls.ancestors()
        if ancestor.program is not it.main
        for method in ancestor.methods.values()
        if method.name != "__init__"
    )
