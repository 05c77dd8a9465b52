"""Lists, dicts and their kin: what is put in, what comes out, and what outlives its iteration."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import libcst as cst

from torchmemlint.flow import items
from torchmemlint.flow.graphs import tensor_from, through
from torchmemlint.flow.interpreter import KEPT, MAX_ELEMENT_DEPTH, Interpreter
from torchmemlint.flow.replacing import replace
from torchmemlint.flow.values import (
    NUMBER,
    Constant,
    Container,
    Graph,
    Instance,
    Kind,
    Known,
    ModuleValue,
    Origin,
    Tensor,
    Unknown,
    Value,
    Via,
    cap,
    join,
)
from torchmemlint.syntax.outline import dotted_text
from torchmemlint.syntax.source_module import Site
from torchmemlint.syntax.text import shortened, text_of
from torchmemlint.syntax.walking import contains

CONSTRUCTORS = {
    "list": "list",
    "dict": "dict",
    "set": "set",
    "tuple": "tuple",
    "collections.defaultdict": "defaultdict",
    "collections.OrderedDict": "dict",
    "collections.deque": "deque",
    "collections.Counter": "dict",
    "queue.Queue": "list",
}


def fresh(it: Interpreter, node: cst.CSTNode, kind: str, *, bounded: bool = False) -> Container:
    """A new, empty container made at `node`."""
    oid = it.oid(node, it.frame.path)
    empty(it, oid)
    return Container(oid, kind, it.frame.loops, bounded=bounded, made=it.site(node))


def empty(it: Interpreter, oid: int) -> None:
    """Forget what a container holds."""
    it.state.heap.begin(oid, it.element_keys.get(oid, ()))


def literal(
    it: Interpreter,
    node: cst.CSTNode,
    kind: str,
    values: Sequence[tuple[cst.BaseExpression, Value]],
    starred: bool,
) -> Container:
    """A tuple, list or set display."""
    container = fresh(it, node, kind)
    for index, (element_node, value) in enumerate(values):
        store(it, container, "[]" if starred else f"[{index}]", value, it.site(element_node))
    if starred or kind == "set":
        return container
    return replace(container, items=tuple(value for _, value in values))


def dictionary(
    it: Interpreter,
    node: cst.CSTNode,
    pairs: Sequence[tuple[str, cst.BaseExpression, Value]],
    merged: Sequence[Value],
    unknown: bool,
) -> Container:
    """A dict display or a `dict(...)` call; `merged` are the mappings unpacked into it."""
    container = fresh(it, node, "dict")
    for value in merged:
        if isinstance(value, Container):
            for key, element, site in entries(it, value):
                store(it, container, key, element, site)
        elif unknown:
            store(it, container, "[]", Unknown(it.deep_origins(value)), it.site(node))
    for name, element_node, value in pairs:
        store(it, container, "[]" if name == "*" else f"[{name}]", value, it.site(element_node))
    return container


def entries(it: Interpreter, container: Container) -> Iterator[tuple[str, Value, Site | None]]:
    """Slot, value and place of what a container holds."""
    it.state.heap.ask_for_elements(container.oid)
    for key in sorted(it.element_keys.get(container.oid, ())):
        value = it.state.heap.get((container.oid, key))
        if value is not None:
            yield key, value, it.entry_sites.get((container.oid, key))


def store(it: Interpreter, container: Container, key: str, value: Value, site: Site | None) -> None:
    """Fill a slot: `[]`, that of all whose key is not known, may hold what was put in earlier as well."""
    slot = (container.oid, key)
    it.element_keys.setdefault(container.oid, set()).add(key)
    known = it.state.heap.get(slot) if key == "[]" else None
    if isinstance(value, Tensor) and value.carries_graph and value.entry is None and site is not None:
        value = replace(value, entry=site)
    it.state.heap[slot] = value if known is None else join(known, value)
    if site is not None and (slot not in it.entry_sites or (isinstance(value, Tensor) and value.carries_graph)):
        it.entry_sites[slot] = site


def graph_parts(
    it: Interpreter, value: Value, site: Site, depth: int = 0, key: str = ""
) -> Iterator[tuple[Tensor, Site]]:
    """The graph-carrying tensors in a value, each with the expression that put it there."""
    if isinstance(value, Tensor) and value.carries_graph:
        yield value, value.entry or site
    elif isinstance(value, Container) and depth < MAX_ELEMENT_DEPTH:
        for slot, element, place in entries(it, value):
            yield from graph_parts(it, element, place or site, depth + 1, slot)


def put(
    it: Interpreter,
    container: Container,
    node: cst.BaseExpression,
    value: Value,
    *,
    how: str,
    site_node: cst.CSTNode,
    text: str,
    key: Constant | None = None,
) -> None:
    """Add a value to a container; a fact if it carries a graph and the container outlives the iteration."""
    fixed = key is not None and key.known
    place = it.site(node)
    loop = it.repeating(container.loops)
    mark = it.origin(site_node, KEPT)
    if loop is not None:
        value = marked(it, value, mark)
    if fixed and key is not None:
        store(it, container, f"[{key.value}]", value, place)
    else:
        store(it, container, "[]", value, place)


def marked(it: Interpreter, value: Value, origin: Origin, depth: int = 0) -> Value:
    """The value, with `origin` in the past of its graph-carrying parts: what is done with them later is told apart."""
    if isinstance(value, Tensor) and value.graph >= Graph.UNKNOWN:
        return replace(value, origins=cap(value.origins | {origin}), summed=value.summed | {origin})
    if isinstance(value, Container) and depth < MAX_ELEMENT_DEPTH:
        for key, element, _ in list(entries(it, value)):
            it.state.heap[(value.oid, key)] = marked(it, element, origin, depth + 1)
        if value.items is not None:
            return replace(value, items=tuple(marked(it, item, origin, depth + 1) for item in value.items))
    return value


def concatenated(it: Interpreter, node: cst.CSTNode, left: Container, right: Container) -> Value:
    """`a + b` of two sequences."""
    result = fresh(it, node, left.kind)
    for part in (left, right):
        for key, value, site in list(entries(it, part)):
            store(it, result, key if left.kind == right.kind == "dict" else "[]", value, site)
    return result


def subscript(it: Interpreter, node: cst.Subscript, owner: Value, keys: Sequence[Value | None]) -> Value:
    """`owner[keys]` as a value."""
    key = keys[0] if len(keys) == 1 else None
    match owner:
        case Container():
            return _item(it, node, owner, key)
        case Tensor(exact=False) if (path := path_with_key(node, key)) in it.state.vars:
            return it.state.vars[path]
        case Tensor():
            made = it.site(node)
            tensor = owner.exact or len(keys) > 1 or it.proved(made, 0) is not None or it.is_shown_to_be_tensor(made)
            result = replace(
                tensor_from((owner,), producer="getitem", made=made),
                exact=tensor,
                part=-1 if tensor else 0,
                kind=owner.kind if owner.exact else Kind.UNKNOWN,
                certain=tensor,
            )
            return result
        case ModuleValue():
            return ModuleValue(it.oid("item", owner.oid), parameters=owner.parameters, why=owner.why, made=owner.made)
        case Known(role="iterator", element=ModuleValue() as layer):
            return owner if key is None else layer  # list(model.children())[:-1]
        case Known(role="batch"):
            computed = owner.qualified == "computed" or _picks(node)
            return replace(owner, qualified="computed" if computed else "part")
        case Unknown():
            path = path_with_key(node, key)
            if path and path in it.state.vars:
                return it.state.vars[path]
            origin = it.entry(node, owner, f"[{key.value if isinstance(key, Constant) and key.known else ''}]")
            if it.proved(origin.site, switches=it.switched_as(origin, owner)) is not None:
                return proved_tensor(it, origin, owner)
            return entry_of(it, owner, origin, path)
        case _:
            return Unknown()


def entry_of(it: Interpreter, owner: Unknown, origin: Origin, path: str) -> Unknown:
    """A part of something unknown; of what a call returned, it is told apart from the other parts."""
    if origin not in it.entries:
        return Unknown(owner.origins, origin, path)
    around = owner.origins - {owner.made} if owner.made in it.entries else owner.origins
    return Unknown(cap(around | {origin}), origin, path)


def proved_tensor(it: Interpreter, made: Origin, source: Value) -> Tensor:
    """A value of unknown make that a later backward proves to carry a graph."""
    from torchmemlint.flow.values import Step

    origins = frozenset({made}) | it.deep_origins(source)
    return Tensor(
        Graph.LIVE,
        origins,
        (Step(made.site, "carries a graph: a backward runs through it"),),
        made=made.site,
        producer="proved",
    )


def entry(it: Interpreter, owner: Container, key: str) -> Value | None:
    """What lies under a key in each of the containers that the owner may be; None where one does not show it.

    One that nothing is ever put into is not the one that is asked.
    """
    found: Value | None = None
    for one in (owner, *owner.others):
        if not it.element_keys.get(one.oid):
            continue
        value = it.state.heap.get((one.oid, key))
        if value is None:
            return None
        found = value if found is None else join(found, value)
    return found


def _picks(node: cst.Subscript) -> bool:
    """`rows[:, columns]`: a list of places, of which torch makes a new tensor where slices and numbers give a view."""
    if len(node.slice) == 1:
        return isinstance(node.slice[0].slice, cst.Index) and isinstance(node.slice[0].slice.value, cst.List)
    viewing = cst.Integer | cst.UnaryOperation | cst.Ellipsis
    indices = [one.slice.value for one in node.slice if isinstance(one.slice, cst.Index)]
    return any(not isinstance(index, viewing) and not _is_none(index) for index in indices)


def _is_none(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Name) and node.value == "None"


def _item(it: Interpreter, node: cst.Subscript, owner: Container, key: Value | None) -> Value:
    if isinstance(key, Constant) and key.known:
        index = key.value
        if owner.items is not None and isinstance(index, int) and -len(owner.items) <= index < len(owner.items):
            return owner.items[index]
        value = entry(it, owner, f"[{index}]")
        if value is not None:
            return value
    elif key is None and owner.kind != "dict":
        return replace(owner, items=None)  # a slice holds the same kind of elements
    if owner.kind == "defaultdict" and not it.element_keys.get(owner.oid):
        return _default(it, owner)
    value = it.element(owner)
    if isinstance(value, Unknown) and owner.kind == "defaultdict":
        return _default(it, owner)
    if value == Unknown() and owner.kind == "dict":
        return items.list_of_class(it, node, owner) or value
    return value


def default_text(node: cst.BaseExpression) -> str:
    """What a `defaultdict` fills in: "list", "defaultdict(list)", "float", ..."""
    if isinstance(node, cst.Lambda):
        node = node.body
    if isinstance(node, cst.Call) and not node.args:
        node = node.func
    match node:
        case cst.List():
            return "list"
        case cst.Dict():
            return "dict"
        case cst.Call(func=func, args=[cst.Arg(value=inner)]) if text_of(func).endswith("defaultdict"):
            return f"defaultdict({default_text(inner)})"
        case _:
            return text_of(node).rpartition(".")[2]


def _default(it: Interpreter, owner: Container) -> Value:
    slot = (owner.oid, "[]")
    value = it.state.heap.get((owner.oid, "default")) or it.lasting((owner.oid, "default"))
    text = str(value.value) if isinstance(value, Constant) and value.known else ""
    kind = text.partition("(")[0]
    if kind in ("list", "dict", "set", "deque", "defaultdict"):
        inner = Container(it.oid("default", owner.oid), kind, owner.loops, made=owner.made)
        if kind == "defaultdict":
            it.state.heap[(inner.oid, "default")] = Constant(text[len("defaultdict(") : -1], True)
        it.element_keys.setdefault(owner.oid, set()).add("[]")
        it.state.heap[slot] = inner
        return inner
    return NUMBER if kind in ("int", "float") else Unknown()


def path_with_key(node: cst.Subscript, key: Value | None) -> str:
    """The path of `name[key]` with a known key, as a local slot; else ""."""
    base = dotted_text(node.value)
    if base and isinstance(key, Constant) and key.known:
        return f"{base}.[{key.value!r}]"
    return ""


def assign_item(it: Interpreter, target: cst.Subscript, value: Value, node: cst.BaseExpression) -> None:
    """`target = value` where target is a subscript."""
    owner = it.evaluate(target.value)
    key: Value | None = None
    if len(target.slice) == 1 and isinstance(target.slice[0].slice, cst.Index):
        key = it.evaluate(target.slice[0].slice.value)
    constant = key if isinstance(key, Constant) else None
    if target in it.written_each:
        it.written_each[target] = value
    match owner:
        case Container(kind="list") if constant is not None and constant.value == -1 and is_cut(value):
            _replace_last(it, owner, value, it.site(node))
        case Container():
            put(
                it,
                owner,
                node,
                value,
                how=f"{shortened(text_of(target), 40)} =",
                site_node=target,
                text=text_of(target.value),
                key=constant if constant is not None and constant.known else None,
            )
        case Tensor(exact=False) if path := path_with_key(target, key):
            it.state.vars[path] = value
            itself = text_of(target) in text_of(node)
            if itself and owner.producer == "proved" and is_cut(value) and isinstance(target.value, cst.Name):
                # `out["loss"] = out["loss"].detach()`: the backward may have run through that entry alone.
                it.state.vars[target.value.value] = replace(owner, graph=Graph.UNKNOWN, history=())
        case Tensor():
            in_place_item(it, target, owner, value)
        case Unknown() | Instance() if items.assigned(it, target, owner, key, value, node):
            return
        case Unknown():
            path = path_with_key(target, key)
            if path:
                it.state.vars[path] = value


def is_cut(value: Value) -> bool:
    """Is it a number, or a tensor on which no graph hangs?"""
    return isinstance(value, Constant) or (isinstance(value, Tensor) and not value.carries_graph)


def _replace_last(it: Interpreter, owner: Container, value: Value, site: Site) -> None:
    """`losses.append(loss); losses[-1] = losses[-1].item()`: what was put in last is not kept."""
    it.state.heap.pop((owner.oid, "[]"), None)
    store(it, owner, "[]", value, site)


def in_place_item(it: Interpreter, target: cst.Subscript, owner: Tensor, value: Value) -> None:
    """`tensor[i] = value`: the tensor now hangs on the value's graph as well."""
    if isinstance(value, Tensor) and isinstance(target.value, cst.Name):
        joined = tensor_from((owner, value), producer="setitem", made=it.site(target))
        if joined.graph is not Graph.NONE:
            it.state.vars[target.value.value] = replace(joined, carried=owner.carried | value.carried)
        if value.origins <= owner.origins or _is_made_here(it, owner):
            return


def _is_made_here(it: Interpreter, value: Tensor) -> bool:
    """Did the running function make the tensor, which is then no other name of one that it was given, or read?"""
    function, made = it.frame.function, value.made
    if function is None or made is None:
        return function is None
    if made.piece is not function.piece:
        return False
    return (function.cls is None and function.parent is None) or contains(function.node, made.node)


# -- methods ---------------------------------------------------------------------------------------------------------

Arguments = Sequence[tuple[str, Value, cst.BaseExpression]]


def method(it: Interpreter, node: cst.Call, owner: Container, name: str, arguments: Arguments) -> Value:
    """A method called on a container."""
    text = text_of(node.func.value) if isinstance(node.func, cst.Attribute) else ""
    handler = _METHODS.get(name)
    if handler is not None:
        return handler(it, node, owner, text, arguments)
    if name in ("index", "count", "qsize", "empty", "full", "join"):
        return NUMBER
    return Unknown()


def _add(it: Interpreter, node: cst.Call, owner: Container, text: str, arguments: Arguments) -> Value:
    if arguments:
        name = node.func.attr.value if isinstance(node.func, cst.Attribute) else "append"
        _, value, value_node = arguments[-1] if name == "insert" else arguments[0]
        put(it, owner, value_node, value, how=name, site_node=node, text=text)
    return Constant(None, True)


def _extend(it: Interpreter, node: cst.Call, owner: Container, text: str, arguments: Arguments) -> Value:
    from torchmemlint.flow import iteration

    name = node.func.attr.value if isinstance(node.func, cst.Attribute) else "extend"
    for keyword, value, value_node in arguments:
        if keyword and not keyword.isdigit():
            put(it, owner, value_node, value, how=name, site_node=node, text=text, key=Constant(keyword, True))
        elif isinstance(value, Container):
            _merge(it, node, owner, text, value, value_node, name)
        else:
            element = iteration.element_of(it, value, value_node)
            put(it, owner, value_node, element, how=name, site_node=node, text=text)
    return Constant(None, True)


def _merge(
    it: Interpreter,
    node: cst.Call,
    owner: Container,
    text: str,
    value: Container,
    value_node: cst.BaseExpression,
    name: str,
) -> None:
    keyed = owner.kind in ("dict", "defaultdict")
    for key, element, site in list(entries(it, value)):
        entry = site.node if site is not None and isinstance(site.node, cst.BaseExpression) else value_node
        fixed = Constant(key[1:-1], True) if keyed and key != "[]" else None
        put(it, owner, entry, element, how=name, site_node=node, text=text, key=fixed)


def _take(it: Interpreter, node: cst.Call, owner: Container, text: str, arguments: Arguments) -> Value:
    key = arguments[0][1] if arguments else None
    if isinstance(key, Constant) and key.known:
        value = entry(it, owner, f"[{key.value}]")
        if value is not None:
            return value
    value = it.element(owner)
    return join(value, arguments[1][1]) if len(arguments) > 1 else value


def _setdefault(it: Interpreter, node: cst.Call, owner: Container, text: str, arguments: Arguments) -> Value:
    if len(arguments) < 2:
        return it.element(owner)
    _, value, value_node = arguments[1]
    if isinstance(value, Container):
        value = replace(value, loops=owner.loops)
    known = it.state.heap.get((owner.oid, "[]"))
    if isinstance(known, Container):
        return known
    store(it, owner, "[]", value, it.site(value_node))
    return value


def _clear(it: Interpreter, node: cst.Call, owner: Container, text: str, arguments: Arguments) -> Value:
    if it.repeating(owner.loops) is None:
        empty(it, owner.oid)
    return Constant(None, True)  # what outlives the call may be filled again before it is read


def _same(it: Interpreter, node: cst.Call, owner: Container, text: str, arguments: Arguments) -> Value:
    return replace(owner, items=None)


def _values(it: Interpreter, node: cst.Call, owner: Container, text: str, arguments: Arguments) -> Value:
    """`d.values()`: iterating over it gives the values, where iterating over the dict gives its keys."""
    return replace(owner, items=None, kind="list")


def _items(it: Interpreter, node: cst.Call, owner: Container, text: str, arguments: Arguments) -> Value:
    pair = literal(it, node, "tuple", [(node.func, NUMBER), (node.func, it.element(owner))], False)
    return Known("items", owner.oid, made=owner.made, loops=owner.loops, element=pair)


def _nothing(it: Interpreter, node: cst.Call, owner: Container, text: str, arguments: Arguments) -> Value:
    return Constant(None, True)


_METHODS: dict[str, Callable[[Interpreter, cst.Call, Container, str, Arguments], Value]] = {
    "append": _add,
    "appendleft": _add,
    "add": _add,
    "insert": _add,
    "put": _add,
    "put_nowait": _add,
    "extend": _extend,
    "extendleft": _extend,
    "update": _extend,
    "pop": _take,
    "popleft": _take,
    "get": _take,
    "get_nowait": _take,
    "setdefault": _setdefault,
    "clear": _clear,
    "values": _values,
    "copy": _same,
    "items": _items,
    "keys": lambda it, node, owner, text, arguments: Known("keys", owner.oid, element=NUMBER),
    "sort": _nothing,
    "reverse": _nothing,
    "remove": _nothing,
    "discard": _nothing,
}


def joined_tensor(it: Interpreter, node: cst.CSTNode, value: Value, producer: str) -> Tensor:
    """`cat`, `stack`, `sum` and the like over a sequence of tensors."""
    parts: list[Value] = list(_flat(it, value))
    result = tensor_from(parts, producer=producer, made=it.site(node))
    if result.carried:
        result = replace(result, carried=through(result, Via.JOINED))
    return result


def _flat(it: Interpreter, value: Value, depth: int = 0) -> Iterator[Value]:
    if isinstance(value, Container) and depth < MAX_ELEMENT_DEPTH:
        for element in it.elements(value):
            yield from _flat(it, element, depth + 1)
    elif isinstance(value, Known | Instance | ModuleValue):
        yield Unknown()
    else:
        yield value
