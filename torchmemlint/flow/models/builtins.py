"""Functions of Python's builtins and standard library that matter to who holds what."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from torchmemlint.flow.domain.arguments import Arguments
from torchmemlint.flow.domain.effects import Serve
from torchmemlint.flow.domain.frame import CallSite
from torchmemlint.flow.domain.heap import ELEMENT, State, visible
from torchmemlint.flow.domain.kinds import Kind, Special
from torchmemlint.flow.domain.manners import Reading
from torchmemlint.flow.domain.memory import computed, sources_of, write_variable
from torchmemlint.flow.domain.refs import NUMBERS, External, Globals, Loop, Object
from torchmemlint.flow.domain.values import (
    FEW,
    NOTHING,
    PLAIN,
    UNKNOWN,
    WEAK,
    Value,
    constant,
    join,
    join_all,
    of,
    texts_of,
)
from torchmemlint.flow.ir.control import While
from torchmemlint.flow.ir.ops import Op
from torchmemlint.flow.ir.places import SOME_PART
from torchmemlint.flow.models import columns, containers, namespaces

Model = Callable[[CallSite], Value]
UNNAMED = "Unnamed"  # in a qualified name: one of the classes or functions that a library has there
_TEES = 8  # iterators that one is split into


def _numbers(site: CallSite) -> Value:
    """`float(x)`, `print(x)`: the values are read."""
    given = sources_of(site.state, containers.consumed(site).arguments.all())
    site.frame.read(given, Reading.NUMBER)
    return PLAIN


def _list(site: CallSite) -> Value:
    box = containers.made(site, Kind.LIST, "list")
    if site.arguments.positional:
        known = containers.written_out(site.state, site.arguments.positional[0])
        if known is not None:
            for number, value in enumerate(known):
                for holder in box.each():
                    site.state.heap.put(holder, number, value)
        else:
            site.consume(site.arguments.positional[0], box)
    return box


def _deque(site: CallSite) -> Value:
    limit = site.arguments.get(1, "maxlen")
    return _bounded(site, _list(site), limit is not None and limit.constant is not None)


def _weak(site: CallSite, make: Model) -> Value:
    """`weakref.WeakValueDictionary()` and the like."""
    box = make(site)
    for holder in box.each():
        site.state.heap.put(holder, Special.WEAK, PLAIN)
    return box


def _queue(site: CallSite) -> Value:
    limit = site.arguments.get(0, "maxsize")
    return _bounded(site, containers.made(site, Kind.LIST, "queue"), limit is not None and limit.constant != 0)


def _bounded(site: CallSite, box: Value, bounded: bool) -> Value:
    for holder in box.each() if bounded else ():
        site.state.heap.put(holder, Special.BOUNDED, PLAIN)
    return box


def _dict(site: CallSite) -> Value:
    box = containers.made(site, Kind.DICT, "dict")
    for value in site.arguments.positional:
        containers.merge(site, box, value)
    for name, value in site.arguments.named.items():
        site.write(box, name, value)
    if site.arguments.stars is not None:
        containers.merge(site, box, site.arguments.stars)
    return box


def _defaultdict(site: CallSite) -> Value:
    box = containers.made(site, Kind.DICT, "defaultdict")
    factory = site.arguments.get(0)
    for holder in box.each():
        if factory is not None and factory.refs:
            site.state.heap.put(holder, Special.FACTORY, factory)
    for value in site.arguments.positional[1:]:
        containers.merge(site, box, value)
    return box


def _fromkeys(site: CallSite) -> Value:
    box = containers.made(site, Kind.DICT, "fromkeys")
    site.write(box, ELEMENT, site.value(1), True)
    return box


def _folded(site: CallSite, start: Value, step: Callable[[CallSite, Value], Value]) -> Value:
    """Return what a loop makes of a value: in each round, `step` gives the next from the last."""
    name = "<folded>"
    site.state.variables[name] = start

    def body(inside: State) -> None:
        at = CallSite(site.frame, inside, site.point, site.arguments)
        write_variable(site.frame, inside, name, step(at, inside.variables[name]), site.point)

    site.machine.run_loop(site.frame, site.state, Loop.of(site.point.site, site.point.context), body)
    return site.state.variables.pop(name)


def _sum(site: CallSite) -> Value:
    """`sum(x)`: the elements are added up, as a loop would."""
    items = site.value(0)

    def add(at: CallSite, total: Value) -> Value:
        sources = sources_of(at.state, [total, at.machine.advance(at.frame, at.state, items, at.point)])
        return Value(graph=computed(at.frame, at.state, sources, at.point, sums=True))

    return _folded(site, site.arguments.get(1, "start") or PLAIN, add)


def _any_item(site: CallSite) -> Value:
    """`max(a, b)`, `next(it, default)` and the like: one of what is given."""
    if len(site.arguments.positional) == 1:
        value = site.arguments.positional[0]
        return _ranked(site, site.iterate(value) if value.refs else value)
    found = site.arguments.joined()
    refs = frozenset(r for r in found.refs if not isinstance(r, NUMBERS))
    bounded = any(type(value.constant) is int for value in site.arguments.positional)
    return found if refs == found.refs and not bounded else found._replace(refs=refs, open=True)


def _ranked(site: CallSite, item: Value) -> Value:
    """Return an item that `key=` is called on."""
    key = site.arguments.named.get("key")
    if key is not None and key.refs:
        site.frame.read(sources_of(site.state, [site.call(key, item)]), Reading.NUMBER)
    return item


def _integer(site: CallSite) -> Value:
    """`int(n)`: what stands for a number stays what it is."""
    given = site.value(0)
    if given.constant is FEW or (given.refs and all(isinstance(r, NUMBERS) for r in given.refs)):
        return given
    return _numbers(site)


def _next(site: CallSite) -> Value:
    iterator = site.value(0)
    loop = site.frame.loops[-1] if site.frame.loops else None
    if loop is not None and isinstance(loop.site, While) and _is_made_before(iterator, loop.site):
        site.frame.over[loop] = iterator
    found = site.iterate(iterator)
    return join(found, site.arguments.positional[1]) if len(site.arguments.positional) > 1 else found


def _is_made_before(iterator: Value, loop: While) -> bool:
    """Is an iterator none that a round of a loop makes?"""
    sites = [r.site for r in iterator.refs if type(r) is Object]
    return bool(iterator.refs) and not any(isinstance(site, Op) and loop.contains(site) for site in sites)


def _chosen(site: CallSite) -> Value:
    """`sorted(xs)`, `random.sample(xs, k)`: a list of items of what is given."""
    box = containers.made(site, Kind.LIST, "sorted")
    _ranked(site, site.consume(site.value(0), box))
    return Value(box.refs, containers.through(site.value(0)))


def _few(site: CallSite) -> Value:
    """`heapq.nsmallest(n, xs)`: a list of some of the items of what is given."""
    items = site.value(1, "iterable")
    is_list = items.refs and all(type(r) is Object and r.kind in (Kind.LIST, Kind.TUPLE) for r in items.refs)
    box = items if is_list else containers.made(site, Kind.LIST, "items")
    if not is_list:
        site.consume(items, box)
    return containers.part_of(site.frame, site.state, box, site.point, SOME_PART)


def _heap(*methods: str) -> Model:
    """`heapq.heappush(xs, x)` and its like: methods of the list that they work on."""

    def model(site: CallSite) -> Value:
        result = PLAIN
        for name in methods:
            given = site.arguments.rest() if name == "append" else Arguments()
            result = site.machine.call_method(site.frame, site.state, site.value(0), name, given, site.point)
        return result

    return model


def _lazy(how: str) -> Model:
    def model(site: CallSite) -> Value:
        parts = list(site.arguments.positional)
        if site.arguments.star is not None:
            parts.append(site.iterate(site.arguments.star))
        return containers.lazy(site, how, parts)

    return model


def _zip(site: CallSite) -> Value:
    """`zip(xs, ys)`: rows; `zip(*rows)`: columns."""
    rows = site.arguments.star
    if rows is None or site.arguments.positional:
        return _lazy("zip")(site)
    return containers.lazy(site, columns.COLUMNS, [site.iterate(rows)])


def _iter(site: CallSite) -> Value:
    if len(site.arguments.positional) > 1:
        return containers.lazy(site, "call", site.arguments.positional[:1])
    value = site.value(0)
    if value.refs:
        site.frame.log(Serve(site.point, "iter", site.arguments))
    return value if len(value.refs) == 1 and _is_iterator(value) else containers.lazy(site, "through", [value])


def _tee(site: CallSite) -> Value:
    """`itertools.tee(it)`: each gives the same items."""
    number = site.constant(1, "n", 2)
    through = containers.lazy(site, "tee", [site.value(0)])
    return containers.row(site, "tee", [through] * (number if isinstance(number, int) and 0 < number <= _TEES else 1))


def _is_iterator(value: Value) -> bool:
    return all(type(r) is Object and r.kind in (Kind.LAZY, Kind.GENERATOR) for r in value.refs)


def _through(site: CallSite) -> Value:
    """`tqdm(loader)` and the like: an iterator over the same items."""
    value = site.arguments.get(0, "iterable")
    return UNKNOWN if value is None else containers.lazy(site, "through", [value])


def _replace(site: CallSite, place: int) -> Value:
    """`re.sub(pattern, repl, string)`: calls what it replaces with, and gives a text."""
    function = site.value(place, "repl")
    if function.refs:
        site.machine.call(site.frame, site.state, function, Arguments([PLAIN]), site.point)
    return PLAIN


def _namedtuple(site: CallSite) -> Value:
    made = Object.of(Kind.OPAQUE, site.point.site, site.point.context, "namedtuple")
    heap = site.state.heap
    names = site.value(1, "field_names")
    if not names.known:
        items = containers.written_out(site.state, names)
        texts = [item.constant for item in items or () if isinstance(item.constant, str)]
        names = constant(" ".join(texts))
    heap.put(made, "fields", names)
    return of(made)


def _field(site: CallSite) -> Value:
    """`dataclasses.field(...)`."""
    made = Object.of(Kind.OPAQUE, site.point.site, site.point.context, "dataclasses.field")
    for name, value in site.arguments.named.items():
        site.state.heap.put(made, name, value)
    return of(made)


def _getattr(site: CallSite) -> Value:
    base, name = site.value(0), site.value(1)
    if not name.known and site.knows_more and name.refs and (not base.refs or any(r.symbolic for r in base.refs)):
        return site.postpone("getattr")
    if texts := sorted(texts_of(name)):
        found = [site.machine.attribute(site.frame, site.state, base, text, site.point) for text in texts]
        return join_all([*found, *site.arguments.positional[2:]])
    result = NOTHING
    for holder in base.each():
        for _, value in visible(site.state.heap.edges(holder)):
            result = join(result, value)
        if type(holder) is Globals:
            result = join(result, namespaces.member(site, holder, name))
        if type(holder) is Object and holder.kind is Kind.MODULE:
            result = join(result, site.item(of(holder), ELEMENT))
        if type(holder) is External:
            result = join(result, of(External.of(f"{holder.qualified}.{UNNAMED}")))
    is_of_library = bool(base.refs) and not base.open and all(type(r) is External for r in base.refs)
    return Value(result.refs, result.graph, open=not is_of_library)


def _setattr(site: CallSite) -> Value:
    name = site.constant(1, "name", ...)
    known = isinstance(name, str)
    site.write(site.value(0), name if known else Special.NAMED, site.value(2), not known)
    return PLAIN


def _locals(site: CallSite) -> Value:
    """`locals()`: whoever gets it may take any variable out of it."""
    box = containers.made(site, Kind.DICT, "locals")
    for name, value in site.state.variables.items():
        site.write(box, name, value)
    return box


def _reduce(site: CallSite) -> Value:
    """`functools.reduce(f, xs, start)`: f is called on what it gave before and the next item."""
    function, items = site.value(0), site.value(1)
    start = site.arguments.get(2, "initial")
    return _folded(
        site,
        start if start is not None else site.iterate(items),
        lambda at, total: at.call(function, total, at.iterate(items)),
    )


_ITERATORS = (  # over the same items as what they are given
    "reversed itertools.islice itertools.accumulate itertools.takewhile itertools.dropwhile itertools.pairwise "
    "tqdm.tqdm tqdm.auto.tqdm tqdm.notebook.tqdm tqdm.trange tqdm.asyncio.tqdm rich.progress.track"
).split()

FUNCTIONS: dict[str, Model] = {
    **dict.fromkeys(("float", "print", "str", "repr", "format", "bool", "round", "complex"), _numbers),
    **dict.fromkeys(
        ("len", "isinstance", "type", "id", "hasattr", "callable", "hash", "issubclass", "range", "open", "input"),
        lambda site: PLAIN,  # only the kind is looked at
    ),
    "int": _integer,
    **dict.fromkeys(("list", "tuple", "set", "frozenset"), _list),
    "collections.deque": _deque,
    **dict.fromkeys(("queue.Queue", "queue.SimpleQueue", "queue.LifoQueue", "asyncio.Queue"), _queue),
    **dict.fromkeys(("dict", "collections.OrderedDict", "collections.Counter", "types.SimpleNamespace"), _dict),
    "collections.defaultdict": _defaultdict,
    "dict.fromkeys": _fromkeys,
    "sum": _sum,
    **dict.fromkeys(("max", "min", "random.choice"), _any_item),
    "next": _next,
    **dict.fromkeys(("sorted", "random.sample", "random.choices"), _chosen),
    **dict.fromkeys(("heapq.nsmallest", "heapq.nlargest"), _few),
    "heapq.heappush": _heap("append"),
    "heapq.heappop": _heap("pop"),
    **dict.fromkeys(("heapq.heappushpop", "heapq.heapreplace"), _heap("append", "pop")),
    "enumerate": _lazy("enumerate"),
    **dict.fromkeys(("zip", "itertools.zip_longest"), _zip),
    "itertools.product": _lazy("zip"),
    "map": _lazy("map"),
    "itertools.starmap": _lazy("starmap"),
    "filter": _lazy("filter"),
    "itertools.cycle": _lazy("cycle"),
    "itertools.chain": _lazy("chain"),
    "itertools.chain.from_iterable": _through,
    "iter": _iter,
    **dict.fromkeys(_ITERATORS, _through),
    "itertools.tee": _tee,
    "functools.partial": containers.partially,
    "operator.methodcaller": containers.partially,  # of a method, by its name
    **{f"re.{name}": partial(_replace, place=1) for name in ("sub", "subn")},
    **{f"re.compile.{name}": partial(_replace, place=0) for name in ("sub", "subn")},
    "functools.reduce": _reduce,
    "collections.namedtuple": _namedtuple,
    "dataclasses.field": _field,
    "attr.ib": _field,
    "getattr": _getattr,
    "importlib.import_module": namespaces.module,
    "setattr": _setattr,
    "locals": _locals,
    "globals": lambda site: of(Globals.of(site.frame.function.unit.name)),
    "vars": lambda site: site.value(0),
    "weakref.WeakSet": lambda site: _weak(site, _list),
    **{f"weakref.Weak{name}Dictionary": lambda site: _weak(site, _dict) for name in ("Key", "Value")},
    "weakref.ref": lambda site: UNKNOWN,
    "weakref.proxy": lambda site: site.value(0)._replace(constant=WEAK),  # a proxy stands for its object
    "typing.cast": lambda site: site.value(1, "val"),
    "contextlib.ExitStack": lambda site: of(Object.of(Kind.STACK, site.point.site, site.point.context)),
}  # fmt: skip
