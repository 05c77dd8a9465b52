"""Records: lists of Python objects that a data set keeps, one entry for each of its samples.

What is not understood is nothing: a list counts only where all that is put into it is known, where each entry is made
of plain objects (and not of arrays or tensors, whose memory lies elsewhere), and where there are as many as a file has
lines, a folder files, or a table rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import count

from torchmemlint.flow.fact.contents import Contents, Put, Spot
from torchmemlint.flow.fact.reading import Reading
from torchmemlint.flow.ir import ops
from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.ir.control import For
from torchmemlint.flow.ir.places import ComputedKey, Scope, SliceKey, Spread
from torchmemlint.immutable import immutable
from torchmemlint.knowledge import records as known

_OF_DOCUMENT = "the objects of a JSON document"  # which may be strings
_ARRAYS = ("numpy.", "torch.")
_DEPTH = 12
_NESTED = 2  # objects of the project that hold each other
_WORK = 2_000  # values that are looked at for one attribute


_Reading = ops.GetItem | ops.CallMethod  # what takes an item
_Filling = tuple[ops.Op, str, ops.Op]  # what is put in, what that is, what there are as many of


@immutable()
class Kept:
    """A list with Python objects for each sample, which a data set has as an attribute."""

    attribute: str  # "samples"
    what: str  # "a dict for each sample"
    entry: ops.Op  # what is put in for each
    source: ops.Op  # what there are as many of
    read: ops.Op  # where `__getitem__` reads an entry


def kept(contents: Contents, sampling: Iterable[str]) -> Kept | None:
    """Return the list of Python objects that a data set reads its samples from; None where that is not certain.

    Of several, one whose entries are structures for certain: those of a document may be plain strings.
    """
    first: Kept | None = None
    for attribute, reading, read in _read(contents, sampling):
        fillings = list(_Entries(contents).of(*contents.attribute(attribute)))
        if fillings and (filling := fillings[0]) is not None and None not in fillings:
            entry, what, source = filling
            found = Kept(attribute, what, entry, source, read)
            if what != _OF_DOCUMENT or _is_taken_apart(reading, read):
                return found
            first = first or found
    return first


def _read(contents: Contents, sampling: Iterable[str]) -> Iterator[tuple[str, Reading, _Reading]]:
    """Yield the attributes that an item is taken of by what makes samples, or by methods that this calls."""
    todo = [method for name in sampling if (method := contents.method(name)) is not None]
    for reading in todo:
        for op in operations(reading.function.body):
            if isinstance(op, ops.GetItem) and isinstance(op.key, ComputedKey):
                key = reading.made.get(op.key.temp)
                if isinstance(key, ops.Operate) and len(key.operands) == 1:
                    continue  # `x[-count]`
                yield from ((name, reading, op) for name in _own(contents, Spot(reading, op.base)))
            elif isinstance(op, ops.CallMethod) and op.name == "get" and op.arguments and not reading.is_self(op.base):
                yield from ((name, reading, op) for name in _own(contents, Spot(reading, op.base)))
            elif isinstance(op, ops.CallMethod) and reading.is_self(op.base):
                method = contents.method(op.name)
                todo += [method] if method is not None and method not in todo else []


def _own(contents: Contents, spot: Spot) -> Iterator[str]:
    """Yield the attributes of the object itself that a value may be."""
    for origin in contents.origins(spot):
        if isinstance(origin.op, ops.GetAttribute) and origin.reading.is_self(origin.op.base):
            yield origin.op.name


def _is_taken_apart(reading: Reading, entry: _Reading) -> bool:
    """Is an entry indexed, asked for its items, or unpacked, as no string would be?"""
    todo = [entry.dst]
    for temp in todo:
        for op in reading.taken.get(temp, ()):
            match op:
                case ops.Bind(name=name):
                    todo += [load.dst for load in reading.loads.get(name.text, ()) if load.dst not in todo]
                case ops.GetItem(base=base) if base == temp:
                    return True
                case ops.CallMethod(name="items" | "keys" | "values" | "get") | ops.Unpack():
                    return True
    return False


@immutable()
class _What:
    """What a value is: nothing is known of it, unless something is said."""

    plain: bool = False  # strings, numbers, paths, structures of such, and no array or tensor?
    many: bool = False  # are there as many in it as a file has lines, a folder files, a table rows?
    shape: str = ""  # "a dict": where it is made of several plain objects
    items: tuple[_What, ...] = ()  # what is in it: all of it, or what each of its items is unpacked to

    @property
    def item(self) -> _What:
        """What each of its items is."""
        return self.items[0] if len(self.items) == 1 else _What(self.plain, self.many)


_PLAIN = _What(plain=True)
_RECORDS = _What(plain=True, many=True)
_PART = replace(_RECORDS, items=(replace(_RECORDS, shape=_OF_DOCUMENT),))
_DOCUMENT = replace(_PART, shape="a parsed JSON document")
_FILE = _What(many=True, items=(_RECORDS,))
_GIVEN = _What(items=(_PLAIN,))


def _together(found: Iterable[_What]) -> _What | None:
    """Return what a value is that may be one of some; None if there are none."""
    every = list(found)
    if not every:
        return None
    shape = every[0].shape if all(one.shape for one in every) else ""
    items = _together(one.item for one in every if one.items) if any(one.items for one in every) else None
    return _What(
        all(one.plain for one in every),
        all(one.many for one in every),
        shape,
        every[0].items if len(every) == 1 else (items,) if items is not None else (),
    )


class _Values:
    """Says what values are."""

    def __init__(self, contents: Contents, outer: _Values | None = None) -> None:
        """`outer`: of an object that holds this one; the two have a share of work together."""
        self._contents = contents
        self._within: int = outer._within + 1 if outer is not None else 0
        self._open: set[Spot] = set()
        self._looks: Iterator[int] = outer._looks if outer is not None else count(1)

    def of(self, spot: Spot) -> _What | None:
        """Return what a temporary holds; None where it is nothing, or what is being looked at."""
        if spot in self._open:
            return None
        if next(self._looks) > _WORK or len(self._open) > _DEPTH:
            return _What()
        self._open.add(spot)
        found = [self._of(origin) for origin in self._contents.origins(spot)]
        self._open.discard(spot)
        return _together(one for one in found if one is not None)

    def _of(self, spot: Spot) -> _What | None:
        op = spot.op
        match op:
            case ops.Constant(value=value):
                return _PLAIN if value is not None else None
            case ops.Format() | ops.Compare():
                return _PLAIN
            case ops.Load():
                return _PLAIN if op.name.scope is Scope.GLOBAL else _GIVEN
            case ops.Operate(operands=operands):
                others = [temp for temp in operands if not _is_number(spot.at(temp))]
                found = [one for temp in others if (one := self.of(spot.at(temp))) is not None]
                plain, many = (any(getattr(one, name) for one in found) for name in ("plain", "many"))
                return replace(_together(found) or _PLAIN, plain=plain or not found, many=many)
            case ops.GetAttribute(base=base) if spot.reading.is_self(base):
                held = [one for stored in self._contents.attribute(op.name) if (one := self.of(stored)) is not None]
                return replace(_together(held) or _PLAIN, plain=True)  # it is there once, and not for each sample
            case ops.GetAttribute(base=base):
                whole = self.of(spot.at(base))
                return _What(whole is None or whole.plain)
            case For(source=source):
                whole = self.of(spot.at(source))
                return whole.item if whole is not None else None
            case ops.Unpack(src=src, targets=targets):
                whole = self.of(spot.at(src))
                if whole is not None and len(whole.items) == len(targets) > 1:
                    return whole.items[targets.index(spot.temp)]
                return replace(whole, shape="", items=()) if whole is not None else None
            case ops.GetItem(base=base, key=key):
                whole = self.of(spot.at(base))
                if whole is None or isinstance(key, SliceKey):
                    return whole
                return _PART if whole.items == _PART.items else whole.item
            case ops.Make(kind=kind, entries=entries):
                return self._made(spot, kind, [spot.at(one.temp) for one in entries])
            case ops.Call() | ops.CallMethod():
                return self._called(spot, op)
        return _What()

    def _made(self, spot: Spot, kind: str, entries: list[Spot]) -> _What | None:
        """Return what a container is, with what is put into it."""
        put = self._contents.put(spot)
        found = [self.of(one) for one in entries]
        for one in put:
            held = self.of(one.value)
            found.append(held.item if one.spread and held is not None else held)
        item = _together(one for one in found if one is not None)
        if item is None:
            return None
        shape = f"a {kind}" if item.plain and (put or len(entries) > (kind != "dict")) else ""
        return _What(item.plain, any(self.source(one) is not None for one in put), shape, (item,))

    def _called(self, spot: Spot, op: ops.Call | ops.CallMethod) -> _What | None:
        name, method = spot.reading.called(op), op.name if isinstance(op, ops.CallMethod) else ""
        base = self.of(spot.at(op.base)) if isinstance(op, ops.CallMethod) else None
        given = [self.of(spot.at(one.temp)) or _PLAIN for one in op.arguments]
        if name in known.DOCUMENTS:
            return _DOCUMENT
        if row := known.ROWS.get(name) or known.ROW_METHODS.get(method):
            return replace(_RECORDS, items=(replace(_RECORDS, shape=row),))
        if name in known.FILES or method == "open":
            return _FILE
        if name in known.MANY or method in known.MANY_METHODS:
            return _RECORDS
        if name in ("enumerate", "zip"):
            parts = [one.item for one in given]
            parts = [_PLAIN, *parts[:1]] if name == "enumerate" else parts
            plain, many = all(one.plain for one in parts), any(one.many for one in given)
            return _What(plain, many, items=(_What(plain, many, "a tuple" if plain else "", tuple(parts)),))
        if name in known.COPYING and given:
            return given[-1] if name == "filter" else given[0]
        if name == "dict" and given and all(one.spread is Spread.NAMED for one in op.arguments):
            plain = all(one.plain for one in given)
            return _What(plain, shape="a dict" if plain else "")
        if (instance := self._contents.of_instance(spot)) is not None:
            return self._object(*instance, all(one.plain for one in given))
        if (name in known.EMPTY and not given) or self._contents.put(spot):
            return self._made(spot, name.rpartition(".")[2] if name in known.EMPTY else "list", [])
        if method == "values" and base is not None and base.plain:
            return replace(base, shape="")
        many = method in known.SAME_METHODS and base is not None and base.many
        if method in known.PLAIN_METHODS and not name.startswith(_ARRAYS):
            return _What(plain=True, many=many, shape="a list" if method in known.LISTS else "")
        return _What(many or name in known.PLAIN or name.startswith("os.path."), many)

    def _object(self, cls: ops.Class, contents: Contents, given_plain: bool) -> _What:
        """Return what an object of the project's is: a structure if it holds one, or nothing but plain objects."""
        if self._within > _NESTED:
            return _What()
        values, attributes = _Values(contents, self), contents.attributes()
        held = [_together(map(values.of_attribute, contents.attribute(name))) for name in attributes]
        structured = any(one is not None and one.plain and one.shape for one in held)
        plain = given_plain and all(one is not None and (one.plain or one == _GIVEN) for one in held)
        return _What(structured or plain, shape=f"a `{cls.name}`" if structured or plain else "")

    def of_attribute(self, stored: Spot) -> _What:
        """Return what is stored; of a parameter, only that it is one."""
        return self.of(stored) or _PLAIN

    def source(self, put: Put) -> ops.Op | None:
        """Return what is gone through, record by record, when something is put into a container."""
        return next((loop.op for loop in put.loops if (what := self.of(loop)) is not None and what.many), None)


def _is_dict(spot: Spot) -> bool:
    op = spot.op
    made = op.kind if isinstance(op, ops.Make) else spot.reading.called(op) if isinstance(op, ops.Call) else ""
    return made in ("dict", "collections.OrderedDict", "collections.defaultdict")


def _is_number(spot: Spot) -> bool:
    return isinstance(spot.op, ops.Constant) and isinstance(spot.op.value, int | float)


class _Entries:
    """Says how lists are filled."""

    def __init__(self, contents: Contents) -> None:
        self._contents, self._values = contents, _Values(contents)
        self._seen: set[Spot] = set()

    def of(self, *containers: Spot) -> Iterator[_Filling | None]:
        """Yield how what some temporaries hold is filled; None for what is not understood."""
        for spot in (origin for container in containers for origin in self._contents.origins(container)):
            if spot not in self._seen:
                self._seen.add(spot)
                yield from self._of(spot)

    def _of(self, spot: Spot) -> Iterator[_Filling | None]:
        match spot.op:
            case ops.Constant(value=None):
                return
            case ops.GetAttribute(base=base, name=name) if spot.reading.is_self(base):
                yield from self.of(*self._contents.attribute(name))
            case ops.GetItem(base=base, key=SliceKey()):
                yield from self.of(spot.at(base))
            case ops.Operate(operator="+", operands=operands):
                yield from self.of(*map(spot.at, operands))
            case ops.Call(arguments=[given, *_]) as op if spot.reading.called(op) in known.COPYING:
                whole = spot.at(given.temp)
                if not any(map(_is_dict, self._contents.origins(whole, own=True))):  # whose keys are copied
                    yield from self.of(whole)
            case _:
                yield from self._filled(spot)

    def _filled(self, spot: Spot) -> Iterator[_Filling | None]:
        what, put, op = self._values.of(spot), self._contents.put(spot), spot.op
        if op is None or (isinstance(op, ops.Make) and op.entries):
            yield None  # as many as are written out
        elif what is not None and not put:
            yield self._filling(op, what.item, op if what.many else None)
        for one in put:
            if one.spread:
                yield from self.of(one.value)
            else:
                yield self._filling(one.value.op, self._values.of(one.value), self._values.source(one))

    @staticmethod
    def _filling(entry: ops.Op | None, what: _What | None, source: ops.Op | None) -> _Filling | None:
        if entry is None or what is None or not what.shape or source is None:
            return None
        return entry, what.shape if what.shape == _OF_DOCUMENT else f"{what.shape} for each sample", source
