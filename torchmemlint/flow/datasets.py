"""Data sets of the project, and which of its functions a loader calls, so that its workers run them."""

from __future__ import annotations

import enum
from collections.abc import Iterator

from torchmemlint.flow.facts import FileFacts, Loader
from torchmemlint.flow.program import ClassInfo, Function
from torchmemlint.flow.values import FunctionValue, Instance, Known, Partial, Value
from torchmemlint.immutable import immutable

_ITERABLE = frozenset({"IterableDataset", "IterDataPipe"})
_MAP_STYLE = frozenset({"Dataset", "MapDataPipe", "VisionDataset", "InMemoryDataset"})
_LIBRARIES = ("torch.utils.data.", "torchvision.datasets.", "torchaudio.datasets.", "torch_geometric.data.")
SAMPLING = ("__getitem__", "__getitems__")


class Part(enum.Enum):
    """What a function does for a loader."""

    SAMPLE = "sample"  # makes one item of a map-style data set
    STREAM = "stream"  # makes all items of an iterable one
    BATCH = "batch"  # makes a batch of items
    START = "start"  # prepares a worker


@immutable()
class Called:
    """A function that loaders call, in the file that is analysed."""

    entry: Function  # what they call: it, or a function that comes to it
    part: Part
    loaders: tuple[Loader, ...]  # those in view


def is_map_style(cls: ClassInfo) -> bool:
    """Does a class derive from a map-style data set of a library?"""
    return _derives(cls, _MAP_STYLE) and not is_iterable(cls)


def is_iterable(cls: ClassInfo) -> bool:
    """Does a class derive from torch's iterable data set?"""
    return any(base.rpartition(".")[2] in _ITERABLE for base in cls.external_bases())


def _derives(cls: ClassInfo, names: frozenset[str]) -> bool:
    return any(
        base.startswith(_LIBRARIES) and (base.rpartition(".")[2] in names or base.startswith(_LIBRARIES[1:3]))
        for base in cls.external_bases()
    )


def given_to(loader: Loader) -> Instance | None:
    """The object of the project's that a loader loads from, also through `Subset` or `random_split`."""
    value = loader.dataset
    while isinstance(value, Known) and value.role in ("dataset", "parts"):
        value = value.element if value.role == "parts" else dict(value.arguments).get("0")
    return value if isinstance(value, Instance) else None


def called_by_loaders(facts: FileFacts) -> dict[Function, Called]:
    """The functions of the file that run in workers where a loader has some, with those that these call."""
    found: dict[Function, Called] = {}
    for called in (*_of_datasets(facts), *_of_loaders(facts)):
        for function in reached(called.entry):
            found.setdefault(function, called)
    return found


def _of_datasets(facts: FileFacts) -> Iterator[Called]:
    given = [(loader, instance.cls) for loader in facts.loaders if (instance := given_to(loader)) is not None]
    for cls in {cls.oid: cls for cls in facts.program.classes.values()}.values():
        loaders = tuple(loader for loader, loaded in given if cls in loaded.ancestors())
        if is_iterable(cls):
            entries = {"__iter__": Part.STREAM}
        elif loaders or is_map_style(cls):
            entries = dict.fromkeys(SAMPLING, Part.SAMPLE)
        else:
            continue
        for name, part in entries.items():
            if name in cls.methods:
                yield Called(cls.methods[name], part, loaders)


def _of_loaders(facts: FileFacts) -> Iterator[Called]:
    by_function: dict[tuple[Function, Part], list[Loader]] = {}
    for loader in facts.loaders:
        for keyword, part in (("collate_fn", Part.BATCH), ("worker_init_fn", Part.START)):
            function = function_of(loader.get(keyword))
            if function is not None and function.program is facts.program:
                by_function.setdefault((function, part), []).append(loader)
    for (function, part), loaders in by_function.items():
        yield Called(function, part, tuple(loaders))


def function_of(value: Value | None) -> Function | None:
    """The project's function that is called where a value is."""
    match value:
        case FunctionValue(function=function):
            return function
        case Partial(target=target):
            return function_of(target)
        case Instance(cls=cls):
            return cls.method("__call__")
    return None


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
