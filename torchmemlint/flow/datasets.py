"""Data sets of the project, and which of its functions a loader calls, so that its workers run them."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.flow.facts import Loader
from torchmemlint.flow.program import Function
from torchmemlint.flow.values import Instance, Known

SAMPLING = ("__getitem__", "__getitems__")


def given_to(loader: Loader) -> Instance | None:
    """The object of the project's that a loader loads from, also through `Subset` or `random_split`."""
    value = loader.dataset
    while isinstance(value, Known) and value.role in ("dataset", "parts"):
        value = value.element if value.role == "parts" else dict(value.arguments).get("0")
    return value if isinstance(value, Instance) else None


def reached(entry: Function) -> Iterator[Function]:
    """A function, and those of the same file that it calls by name or on its own object, and so on."""
    pending, seen = [entry], {entry}
    while pending:
        function = pending.pop()
        yield function
        for path in sorted(function.outline.called):
            owner, _, name = path.rpartition(".")
            if owner == "self" and function.cls is not None:
                callee = function.cls.method(name)
            else:
                callee = None if owner else function.program.find_function(path)
            if callee is not None and callee.program is entry.program and callee not in seen:
                seen.add(callee)
                pending.append(callee)
