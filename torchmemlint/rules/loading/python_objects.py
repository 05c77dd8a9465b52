"""Lists of Python objects that a data set keeps, one entry for each of its samples (TML405).

Read from the syntax of the class, in whatever file it stands, and asked only of classes that a loader with workers
loads from. What is not understood is nothing: the list counts only where everything that is assigned to the attribute
is known, where each entry is made of plain objects (and not of arrays or tensors, whose memory lies elsewhere), and
where there are as many as a file has lines, a folder files, or a table rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import libcst as cst

from torchmemlint.flow.datasets import SAMPLING, reached
from torchmemlint.flow.program import ClassInfo, Function, Program
from torchmemlint.immutable import immutable
from torchmemlint.syntax.outline import dotted_text
from torchmemlint.syntax.source_module import Site
from torchmemlint.syntax.walking import children

_DEPTH = 6  # names and attributes in each other
_JSON = frozenset("json.load json.loads ujson.load orjson.loads simplejson.load".split())
_RECORDS = frozenset("csv.reader csv.DictReader".split())
_MANY = (
    _JSON
    | _RECORDS
    | frozenset("open io.open codecs.open gzip.open os.listdir os.walk os.scandir glob.glob glob.iglob".split())
)
_MANY_METHODS = frozenset("iterdir glob rglob readlines splitlines iterrows itertuples open".split())
_TABLE_ROWS = frozenset("iterrows itertuples".split())
_SAME = frozenset("tqdm tqdm.tqdm tqdm.auto.tqdm enumerate sorted list reversed tuple set iter zip filter".split())
_SAME_METHODS = frozenset("items values keys split read".split())
_PLAIN = frozenset("str int float bool len dict list tuple set pathlib.Path Path os.fspath map range".split())
_PLAIN_METHODS = frozenset(
    "split rsplit strip lstrip rstrip replace lower upper format join get as_posix with_suffix resolve relative_to "
    "title splitlines removeprefix removesuffix zfill partition rpartition index items keys values".split()
)
_DOCUMENT = "the objects of a JSON document"
_LISTS = frozenset("split rsplit splitlines".split())


@immutable()
class Kept:
    """A list with Python objects for each sample."""

    attribute: str  # "samples"
    entry: Site  # what is put in for each
    what: str  # "a dict for each sample"
    source: Site  # what there are as many of
    read: Site  # where `__getitem__` reads one


@dataclass(slots=True)
class _Body:
    """What one function assigns, fills and returns, by dotted text ("samples", "self.samples")."""

    function: Function
    assigned: dict[str, list[cst.BaseExpression]] = field(default_factory=dict)
    grown: dict[str, list[tuple[cst.BaseExpression, tuple[cst.For, ...]]]] = field(default_factory=dict)
    unpacked: set[str] = field(default_factory=set)  # paths that are given a part of what is assigned
    loop_targets: dict[str, cst.BaseExpression] = field(default_factory=dict)  # name -> what the loop runs over
    returned: list[cst.BaseExpression] = field(default_factory=list)

    def site(self, node: cst.CSTNode) -> Site:
        return Site(self.function.piece, node)

    @property
    def program(self) -> Program:
        return self.function.program


@immutable()
class _Filled:
    entry: Site
    what: str
    source: Site


class _Class:
    """The methods of a class, those of its bases in view included, each read once."""

    def __init__(self, cls: ClassInfo) -> None:
        self.cls = cls
        names = {name for base in cls.ancestors() for name in base.methods}
        self.methods = [method for name in sorted(names) if (method := cls.method(name)) is not None]
        self.bodies: dict[Function, _Body] = {}

    def body(self, function: Function) -> _Body:
        if function not in self.bodies:
            self.bodies[function] = _read(function)
        return self.bodies[function]


def find(cls: ClassInfo) -> Kept | None:
    """The list of Python objects that a data set reads its samples from; None where that is not certain.

    Of several, one whose entries are structures for certain: those of a document may be plain strings.
    """
    methods = _Class(cls)
    first: Kept | None = None
    for attribute, body, read in _attributes_read(methods):
        filled = _filled_attribute(methods, attribute)
        if filled is None:
            continue
        kept = Kept(attribute, filled.entry, filled.what, filled.source, body.site(read))
        if filled.what != _DOCUMENT or _is_taken_apart(body, read):
            return kept
        first = first or kept
    return first


def _is_taken_apart(body: _Body, entry: cst.Subscript) -> bool:
    """Is an entry indexed, asked for its items, or unpacked, as no string would be?"""
    names = {name for name, values in body.assigned.items() if any(value is entry for value in values)}
    if len(names) > 1:
        return True
    for node in _nodes(body.function.node.body):
        match node:
            case (
                cst.Subscript(value=inner)
                | cst.Attribute(value=inner, attr=cst.Name(value="items" | "keys" | "values" | "get"))
            ):
                if inner is entry or (isinstance(inner, cst.Name) and inner.value in names):
                    return True
    return False


def _attributes_read(methods: _Class) -> Iterator[tuple[str, _Body, cst.Subscript]]:
    """Attributes that `__getitem__`, or what it calls on its object, takes an item of."""
    for name in SAMPLING:
        entry = methods.cls.method(name)
        for function in reached(entry) if entry is not None else ():
            if function.cls is None:
                continue
            body = methods.body(function)
            for node in _nodes(function.node.body):
                if not isinstance(node, cst.Subscript) or _is_constant(node):
                    continue
                for path in _meant(body, node.value):
                    owner, _, attribute = path.rpartition(".")
                    if owner == "self":
                        yield attribute, body, node


def _is_constant(node: cst.Subscript) -> bool:
    match node.slice:
        case [cst.SubscriptElement(slice=cst.Index(value=cst.Integer() | cst.SimpleString() | cst.UnaryOperation()))]:
            return True
        case [cst.SubscriptElement(slice=cst.Index())]:
            return False
    return True  # a slice, or several


def _meant(body: _Body, node: cst.BaseExpression) -> Iterator[str]:
    """The dotted texts that an expression may stand for: `samples = self.train if training else self.test`."""
    path = dotted_text(node)
    if "." in path:
        yield path
    for value in body.assigned.get(path, ()) if path else ():
        for part in (value.body, value.orelse) if isinstance(value, cst.IfExp) else (value,):
            inner = dotted_text(part)
            if "." in inner:
                yield inner


# -- how an attribute is filled --------------------------------------------------------------------------------------


def _filled_attribute(methods: _Class, attribute: str) -> _Filled | None:
    """How the list is filled, where all that is ever assigned to the attribute is understood."""
    path = f"self.{attribute}"
    found: _Filled | None = None
    for method in methods.methods:
        if attribute not in method.outline.names:
            continue
        body = methods.body(method)
        for filled in _fillings(methods, body, path, 0):
            if filled is None:
                return None
            found = found or filled
    return found


def _fillings(methods: _Class, body: _Body, path: str, depth: int) -> Iterator[_Filled | None]:
    """What is assigned to a name and appended to it; None for what is not understood."""
    for entry, loops in body.grown.get(path, ()):
        yield _per_record(methods, body, entry, [loop.iter for loop in loops])
    for value in body.assigned.get(path, ()):
        yield from _assigned(methods, body, path, value, depth)


def _assigned(
    methods: _Class, body: _Body, path: str, value: cst.BaseExpression, depth: int
) -> Iterator[_Filled | None]:
    if depth > _DEPTH:
        yield None
        return
    match value:
        case cst.List(elements=[]) | cst.Dict(elements=[]) | cst.Name(value="None"):
            return
        case cst.Call(func=cst.Name(value="list" | "dict" | "OrderedDict"), args=[]):
            return
        case cst.Subscript(value=inner) if dotted_text(inner) == path:
            return  # some of its own entries
        case cst.Call(func=cst.Name(value="sorted" | "list"), args=[cst.Arg(value=inner), *_]):
            if dotted_text(inner) != path:
                yield from _assigned(methods, body, path, inner, depth + 1)
        case cst.ListComp(elt=elt, for_in=comp):
            if dotted_text(comp.iter) == path and isinstance(elt, cst.Name):
                return  # some of its own entries
            yield _per_record(methods, body, elt, [comp.iter])
        case cst.Name(value=name):
            yield from _local(methods, body, name, depth)
        case cst.Subscript() | cst.Attribute() | cst.Call():
            yield from _computed(methods, body, value, depth)
        case _:
            yield None


def _local(methods: _Class, body: _Body, name: str, depth: int) -> Iterator[_Filled | None]:
    """A local name: what it is bound to, and filled with."""
    if name not in body.assigned and name not in body.grown:
        yield None  # a parameter
        return
    yield from _fillings(methods, body, name, depth + 1)


def _computed(
    methods: _Class, body: _Body, value: cst.Subscript | cst.Attribute | cst.Call, depth: int
) -> Iterator[_Filled | None]:
    parsed = _parsed(body, value, 0)
    if parsed is not None:
        yield _Filled(body.site(value), _DOCUMENT, body.site(parsed))
        return
    callee = _callee(body, value) if isinstance(value, cst.Call) else None
    if callee is None:
        yield None
        return
    inner = methods.body(callee)
    for returned in inner.returned:
        yield from _assigned(methods, inner, "", returned, depth + 1)


def _callee(body: _Body, call: cst.Call) -> Function | None:
    """The method of its own object, or function of its file, that a call leads to."""
    path = dotted_text(call.func)
    owner, _, name = path.rpartition(".")
    if owner in ("self", "cls") and body.function.cls is not None:
        return body.function.cls.method(name)
    return body.program.find_function(path) if path and not owner else None


def _parsed(body: _Body, value: cst.BaseExpression, depth: int) -> cst.Call | None:
    """The call that parses JSON, where the value is what it gives or a part of that."""
    match value:
        case cst.Call() if body.program.qualify(dotted_text(value.func)) in _JSON:
            return value
        case cst.Subscript(value=inner) if depth < _DEPTH:
            return _parsed(body, inner, depth + 1)
        case cst.Name(value=name) if depth < _DEPTH and len(body.assigned.get(name, ())) == 1:
            return _parsed(body, body.assigned[name][0], depth + 1)
    return None


# -- entries and what there are as many of ---------------------------------------------------------------------------


def _per_record(
    methods: _Class, body: _Body, entry: cst.BaseExpression, iterables: Sequence[cst.BaseExpression]
) -> _Filled | None:
    what = _several(body, entry, 0)
    source = next((node for node in iterables if _is_many(methods, body, node, 0)), None)
    if what is None or source is None:
        return None
    return _Filled(body.site(entry), f"{what} for each sample", body.site(source))


def _several(body: _Body, entry: cst.BaseExpression, depth: int) -> str | None:
    """What an entry is, where it is made of several plain Python objects."""
    if depth > _DEPTH:
        return None
    match entry:
        case cst.Dict(elements=[_, *_] as elements):
            values = [e.value for e in elements if isinstance(e, cst.DictElement)]
            return "a dict" if len(values) == len(elements) and _all_plain(body, values, depth) else None
        case cst.Call(func=cst.Name(value="dict"), args=[_, *_] as args):
            return (
                "a dict" if all(a.keyword for a in args) and _all_plain(body, [a.value for a in args], depth) else None
            )
        case cst.Tuple(elements=[_, _, *_] as elements) | cst.List(elements=[_, _, *_] as elements):
            kind = "a tuple" if isinstance(entry, cst.Tuple) else "a list"
            return kind if _all_plain(body, [e.value for e in elements], depth) else None
        case cst.ListComp(elt=elt):
            return "a list" if _is_plain(body, elt, depth + 1) else None
        case cst.Call(func=cst.Attribute(attr=cst.Name(value=name))) if name in _LISTS:
            return "a list"
        case cst.Call(func=func) if body.program.qualify(dotted_text(func)) in _JSON:
            return "a parsed JSON document"
        case cst.Name(value=name):
            return _named(body, name, depth)
    return None


def _named(body: _Body, name: str, depth: int) -> str | None:
    """What a local name is bound to, or what a loop gives it."""
    if name in body.unpacked:
        return None  # `label, path = line.split()`: each is a string
    if name in body.loop_targets and name not in body.assigned:
        return _record(body, body.loop_targets[name])
    values = [v for v in body.assigned.get(name, ()) if not isinstance(v, cst.Dict) or v.elements]
    if not values:
        return "a list" if name in body.grown else "a dict" if name in body.assigned else None
    kinds = [_several(body, value, depth + 1) for value in values]
    return kinds[0] if None not in kinds else None


def _record(body: _Body, iterable: cst.BaseExpression) -> str | None:
    """What a reader of tables gives for each row."""
    match _unwrapped(body, iterable):
        case cst.Call(func=cst.Attribute(attr=cst.Name(value=name))) if name in _TABLE_ROWS:
            return "a row"
        case cst.Call(func=func):
            qualified = body.program.qualify(dotted_text(func))
            return {"csv.reader": "a list", "csv.DictReader": "a dict"}.get(qualified)
        case cst.Name(value=name) if len(body.assigned.get(name, ())) == 1:
            return _record(body, body.assigned[name][0]) if name not in dotted_text(body.assigned[name][0]) else None
    return None


def _all_plain(body: _Body, values: Sequence[cst.BaseExpression], depth: int) -> bool:
    return all(_is_plain(body, value, depth + 1) for value in values)


def _is_plain(body: _Body, value: cst.BaseExpression, depth: int) -> bool:
    """Is it a string, a number, a path, or a structure of such, and no array or tensor?"""
    if depth > _DEPTH:
        return False
    match value:
        case cst.SimpleString() | cst.ConcatenatedString() | cst.FormattedString() | cst.Integer() | cst.Float():
            return True
        case cst.Comparison() | cst.BooleanOperation() | cst.UnaryOperation():
            return True
        case cst.Name(value=name):
            if name in ("None", "True", "False") or name in body.loop_targets:
                return True
            values = body.assigned.get(name)
            if values is None:
                return name in body.grown
            return all(_is_plain(body, one, depth + 1) for one in values)
        case cst.Subscript(value=inner) | cst.Attribute(value=inner):
            return _is_plain(body, inner, depth + 1) or dotted_text(inner).startswith("self")
        case cst.BinaryOperation(left=left, right=right):
            return _is_plain(body, left, depth + 1) or _is_plain(body, right, depth + 1)
        case cst.IfExp(body=first, orelse=second):
            return _is_plain(body, first, depth + 1) and _is_plain(body, second, depth + 1)
        case cst.List(elements=elements) | cst.Tuple(elements=elements) | cst.Set(elements=elements):
            return all(_is_plain(body, element.value, depth + 1) for element in elements)
        case cst.Dict(elements=elements):
            return all(_is_plain(body, element.value, depth + 1) for element in elements)
        case cst.ListComp(elt=elt) | cst.GeneratorExp(elt=elt):
            return _is_plain(body, elt, depth + 1)
        case cst.Call(func=func):
            qualified = body.program.qualify(dotted_text(func))
            if qualified in _PLAIN or qualified in _JSON or qualified.startswith("os.path."):
                return True
            return isinstance(func, cst.Attribute) and func.attr.value in _PLAIN_METHODS
    return False


def _is_many(methods: _Class, body: _Body, value: cst.BaseExpression, depth: int) -> bool:
    """Does it run over the lines of a file, the files of a folder, the rows of a table?"""
    if depth > _DEPTH:
        return False
    value = _unwrapped(body, value)
    match value:
        case cst.Call(func=func):
            if body.program.qualify(dotted_text(func)) in _MANY:
                return True
            if isinstance(func, cst.Attribute):
                name = func.attr.value
                return name in _MANY_METHODS or (
                    name in _SAME_METHODS and _is_many(methods, body, func.value, depth + 1)
                )
            return False
        case cst.Subscript(value=inner):
            return _is_many(methods, body, inner, depth + 1)
        case cst.ListComp(for_in=comp) | cst.GeneratorExp(for_in=comp):
            return _is_many(methods, body, comp.iter, depth + 1)
        case cst.Name(value=name):
            given = [*body.assigned.get(name, ()), *([body.loop_targets[name]] if name in body.loop_targets else ())]
            return len(given) > 0 and all(_is_many(methods, body, one, depth + 1) for one in given)
        case cst.Attribute(value=cst.Name(value="self"), attr=cst.Name(value=attribute)):
            return any(
                _is_many(methods, methods.body(method), one, depth + 1)
                for method in methods.methods
                if attribute in method.outline.names
                for one in methods.body(method).assigned.get(f"self.{attribute}", ())
            )
    return False


def _unwrapped(body: _Body, value: cst.BaseExpression) -> cst.BaseExpression:
    """What `tqdm(...)`, `enumerate(...)`, `sorted(...)` and the like run over."""
    while isinstance(value, cst.Call) and value.args and body.program.qualify(dotted_text(value.func)) in _SAME:
        value = value.args[0].value
    return value


# -- reading a function ----------------------------------------------------------------------------------------------


def _read(function: Function) -> _Body:
    body = _Body(function)
    _visit(body, function.node.body, ())
    return body


def _visit(body: _Body, node: cst.CSTNode, loops: tuple[cst.For, ...]) -> None:
    match node:
        case cst.FunctionDef() | cst.ClassDef() | cst.Lambda():
            return
        case cst.For(target=target, iter=iterable, body=inner):
            _bind(body.loop_targets, target, iterable)
            _visit(body, inner, (*loops, node))
            return
        case cst.Assign(targets=targets, value=value):
            for one in targets:
                _assign(body, one.target, value)
        case cst.AnnAssign(target=target, value=cst.BaseExpression() as value):
            _assign(body, target, value)
        case cst.AugAssign(target=target, value=value):
            _assign(body, target, value)
        case cst.WithItem(item=value, asname=cst.AsName(name=cst.Name() as target)):
            _assign(body, target, value)
        case cst.Return(value=cst.BaseExpression() as value):
            body.returned.append(value)
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="append")), args=[cst.Arg(value=value)]):
            if path := dotted_text(owner):
                body.grown.setdefault(path, []).append((value, loops))
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="extend" | "insert" | "update"))):
            if path := dotted_text(owner):
                body.assigned.setdefault(path, []).append(node)  # not understood
        case cst.CompFor(target=target, iter=iterable):
            _bind(body.loop_targets, target, iterable)
    for child in children(node):
        _visit(body, child, loops)


def _assign(body: _Body, target: cst.BaseExpression, value: cst.BaseExpression) -> None:
    if isinstance(target, cst.Tuple | cst.List):
        parts = value.elements if isinstance(value, cst.Tuple) and len(value.elements) == len(target.elements) else ()
        for index, element in enumerate(target.elements):
            _assign(body, element.value, parts[index].value if parts else value)
            if not parts:
                body.unpacked.add(dotted_text(element.value))
    elif path := dotted_text(target):
        body.assigned.setdefault(path, []).append(value)


def _bind(targets: dict[str, cst.BaseExpression], target: cst.BaseExpression, iterable: cst.BaseExpression) -> None:
    if isinstance(target, cst.Tuple | cst.List):
        for element in target.elements:
            _bind(targets, element.value, iterable)
    elif isinstance(target, cst.Name):
        targets[target.value] = iterable


def _nodes(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """A node and all below it."""
    yield node
    for child in children(node):
        yield from _nodes(child)
