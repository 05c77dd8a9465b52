"""What is imported, or taken out of a module, under a name that the program makes: `import_module("nets." + name)`."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from torchmemlint.flow.domain.frame import CallSite
from torchmemlint.flow.domain.kinds import Kind
from torchmemlint.flow.domain.refs import External, Globals
from torchmemlint.flow.domain.values import LIMIT, UNKNOWN, Pattern, Value, join_all, of, texts_of
from torchmemlint.flow.models import containers


def module(site: CallSite) -> Value:
    """`importlib.import_module(name)`: a module of the project, or one of a few; also of a library."""
    name, unit, index = site.value(0, "name"), site.frame.function.unit, site.machine.index
    package = site.constant(1, "package", None)
    inside = package if isinstance(package, str) else ""
    if isinstance(name.constant, Pattern):
        pattern = _within(inside, name.constant.pattern)
        return _few([of(Globals.of(one.name)) for one in index.matching(pattern, unit)])
    if not texts_of(name) and name.refs and site.knows_more:
        return site.postpone("importlib.import_module")
    found = []
    for text in (_within(inside, text) for text in sorted(texts_of(name))):
        dotted = text.lstrip(".")
        qualified = index.absolute(unit, dotted, len(text) - len(dotted))
        found.append(index.resolve(qualified) or of(External.of(qualified)))
    return join_all(found) if found else UNKNOWN


def _within(package: str, name: str) -> str:
    """Return a relative name as an absolute one, where it is told of which package."""
    return package + name if name.startswith(".") and not name.startswith("..") else name


def member(site: CallSite, holder: Globals, name: Value) -> Value:
    """Return what a module has under a name of which not all is known: a class or function that it defines."""
    pattern = name.constant.pattern if isinstance(name.constant, Pattern) else "*"
    return _few([value for text, value in members(site, holder) if fnmatchcase(text, pattern)])


def namespace(site: CallSite, holder: Globals) -> Value:
    """Return the `__dict__` of a module."""
    box = containers.made(site, Kind.DICT, "namespace")
    for name, value in members(site, holder):
        for made in box.each():
            site.state.heap.put(made, name, value)
    return box


def members(site: CallSite, holder: Globals) -> Iterator[tuple[str, Value]]:
    """Yield the classes and functions that a module has: its own, and those that a package gathers."""
    index = site.machine.index
    unit = index.units.get(holder.module)
    for name in sorted({*unit.once, *(unit.imports if index.is_package(unit) else ())}) if unit is not None else ():
        value = index.attribute(holder.module, name)
        if value is not None and not any(type(r) in (External, Globals) for r in value.refs):
            yield name, value


def _few(found: list[Value]) -> Value:
    """Return one of a few; of too many, all may be another."""
    return join_all(found) if 0 < len(found) <= LIMIT else UNKNOWN
