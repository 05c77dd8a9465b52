"""Copies of a model's state that are taken again and again, to be put back later: of the best epoch, say.

A copy of `state_dict()` that is assigned under a comparison, and only ever put back, saved or returned, in code that
brings something to a device. Or those of every epoch, which a list or dict keeps.
"""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.flow.fact.devices import is_device
from torchmemlint.flow.fact.formulas import Formula
from torchmemlint.flow.ir.blocks import Layout, operations
from torchmemlint.flow.ir.control import Check, For, If, Return, While
from torchmemlint.flow.ir.ops import (
    Bind,
    Call,
    CallMethod,
    Collect,
    Compare,
    Constant,
    GetAttribute,
    GetItem,
    Load,
    Make,
    Op,
    Operate,
    Remove,
    SetAttribute,
    SetItem,
)
from torchmemlint.flow.ir.places import ComputedKey, SliceKey, Temp
from torchmemlint.immutable import immutable

_ORDERS = frozenset({"<", ">", "<=", ">="})
_SHRINKING = frozenset({"pop", "popleft", "popitem", "clear", "remove"})
_BOUNDED = ("deque", "Queue")
_DETACHING = ("detach", "data")
_BRINGING = ("cpu", "to", "clone")


@immutable()
class Snapshot:
    """A copy of a state that stays on the device."""

    op: Op  # the copying expression
    state: CallMethod  # `model.state_dict()`
    target: str  # what it is assigned to, as it is written
    clone: CallMethod | None  # `value.clone()` of a comprehension; None: `copy.deepcopy`
    test: Op  # the condition that says when one is taken
    restored: Op  # where it is put back, saved or returned
    on_device: Op  # what is brought to a device


@immutable()
class Collected:
    """A copy of a state of which a loop keeps every one."""

    op: Op  # the copying expression
    state: CallMethod
    clone: CallMethod | None
    box: str  # the list or dict, as it is written
    each: str  # "iteration", or "call" of a method
    on_host: bool  # is it copied to the CPU?
    single: bool  # is at most one of them read, by its index?


def collected(formula: Formula) -> Iterator[Collected]:
    """The copies of one model's state that a function puts into a list or dict each time: in a loop, or a method."""
    if formula.function.mentions.isdisjoint({"state_dict"}):
        return
    layout, flow = Layout(formula.function), formula.flow
    for op in operations(formula.function.body):
        state, clone = _copied(formula, op)
        on_host = state is None and (state := _brought(formula, op)) is not None
        kept = [one for one in flow.following(op) if not isinstance(one, Collect)]
        if len(kept) == 1 and isinstance(kept[0], Make):  # beside a score, say
            kept = flow.following(kept[0])
        around = list(layout.loops(op))
        if state is None or len(kept) != 1 or not (around or _repeats(formula, layout, op)):
            continue
        match kept[0]:
            case SetItem(base=base, key=ComputedKey(temp=temp)) if not _comes_back(formula, temp):
                box = flow.path(base)
            case CallMethod(name="append", base=base):
                box = flow.path(base)
            case _:
                continue
        owner, whole = flow.path(state.base), around[-1:]
        same = owner and not any(_is_another(formula, loop, path) for loop in whole for path in (owner, box))
        if same and (box if around else _is_own(formula, box)) and not _shrinks(formula, box, begun_anew=not around):
            single = "." not in box and _is_read_singly(formula, box)
            if single or not on_host:
                yield Collected(op, state, clone, box, "iteration" if around else "call", on_host, single)


def _is_read_singly(formula: Formula, box: str) -> bool:
    """Is a variable only added to, and read by an index?"""
    loads = (op for op in operations(formula.function.body) if isinstance(op, Load) and op.name.text == box)
    uses = ((op, use) for op in loads for use in formula.flow.taken.get(op.dst, ()))
    return all(
        isinstance(use, SetItem | GetItem | CallMethod)
        and use.base == op.dst
        and not (isinstance(use, CallMethod) and use.name != "append")
        for op, use in uses
    )


def _is_own(formula: Formula, box: str) -> bool:
    """Is it an attribute of the object whose method this is, and which outlasts the call?"""
    receiver = formula.function.receiver
    return receiver is not None and box.startswith(f"{receiver}.") and formula.function.name != "__init__"


def _comes_back(formula: Formula, key: Temp) -> bool:
    """Is a key one of a few, which come again?"""
    return any(isinstance(op, Operate) and op.operator == "%" for op in formula.flow.behind(key))


def _is_another(formula: Formula, loop: For | While, path: str) -> bool:
    """Does each iteration of a loop have another object under a name, or under an attribute?"""
    name = path.partition(".")[0]
    for op in operations([loop]):
        if isinstance(op, Bind) and op.name.text == name:
            return True
        if isinstance(op, SetAttribute) and path.startswith(f"{formula.flow.path(op.base)}.{op.name}"):
            return True
    return False


def _shrinks(formula: Formula, box: str, *, begun_anew: bool) -> bool:
    """Is it emptied somewhere, or are old elements pushed out? `begun_anew`: does a new one count, too?"""
    cls = formula.function.cls if "." in box else None
    for one in map(formula.beside.of, cls.methods.values()) if cls is not None else [formula]:
        for op in operations(one.function.body):
            if isinstance(op, Remove) or (isinstance(op, CallMethod) and op.name in _SHRINKING):
                if one.flow.path(op.base) == box:
                    return True
                continue
            bound = f"{one.flow.path(op.base)}.{op.name}" if isinstance(op, SetAttribute) else ""
            bound = op.name.text if isinstance(op, Bind) else bound
            if bound == box and isinstance(op, Bind | SetAttribute):
                if begun_anew and one.function.name != "__init__":
                    return True
                made = one.flow.made.get(op.src)
                if isinstance(made, GetItem) and isinstance(made.key, SliceKey) and one.flow.path(made.base) == box:
                    return True
                if isinstance(made, Call | CallMethod) and one.spelled(made).endswith(_BOUNDED):
                    return True
    return False


def find(formula: Formula) -> Iterator[Snapshot]:
    """The snapshots that a function takes, in its order."""
    if formula.function.mentions.isdisjoint({"state_dict"}):
        return
    layout = Layout(formula.function)
    for op in operations(formula.function.body):
        state, clone = _copied(formula, op)
        kept = [one for one in formula.flow.following(op) if not isinstance(one, Collect)]
        if state is None or len(kept) != 1 or not isinstance(kept[0], Bind | SetAttribute):
            continue
        target = kept[0].name.text if isinstance(kept[0], Bind) else f"{formula.flow.path(kept[0].base)}.{kept[0].name}"
        branch = _branch(formula, layout, op)
        if branch is None or not _repeats(formula, layout, op):
            continue
        restored = _restored(formula, target, branch, layout)
        on_device = _on_device(formula)
        test = formula.written(branch.test)
        if restored is not None and on_device is not None and test is not None:
            yield Snapshot(op, state, target, clone, test, restored, on_device)


def _copied(formula: Formula, op: Op) -> tuple[CallMethod | None, CallMethod | None]:
    """The state that an operation copies, and the call that clones each value."""
    flow = formula.flow
    if isinstance(op, Call | CallMethod) and formula.called(op) == "copy.deepcopy" and len(op.arguments) == 1:
        return _state(formula, op.arguments[0].temp), None
    into, clone = _value(formula, op)
    if into is None or not isinstance(clone, CallMethod) or clone.name != "clone" or clone.arguments:
        return None, None
    value = flow.made.get(clone.base)
    while isinstance(value, CallMethod | GetAttribute) and value.name in _DETACHING:
        value = flow.made.get(value.base)
    state = _of_items(formula, into, value)
    return state, clone if state is not None else None


def _brought(formula: Formula, op: Op) -> CallMethod | None:
    """The state whose values an operation collects on the CPU, each as a copy."""
    into, value = _value(formula, op)
    names = set[str]()
    while isinstance(value, CallMethod | GetAttribute) and value.name in {*_DETACHING, *_BRINGING}:
        if isinstance(value, CallMethod) and value.name == "to" and not _is_to_host(formula, value):
            return None
        names.add(value.name)
        value = formula.flow.made.get(value.base)
    state = _of_items(formula, into, value) if into is not None and names & {"cpu", "to"} else None
    return state if state is not None and ("clone" in names or _on_device(formula) is not None) else None


def _is_to_host(formula: Formula, call: CallMethod) -> bool:
    made = formula.flow.made.get(call.arguments[0].temp) if call.arguments else None
    return isinstance(made, Constant) and made.value == "cpu"


def _value(formula: Formula, op: Op) -> tuple[Collect | None, Op | None]:
    """What a dict comprehension collects: the collecting operation, and what makes each value."""
    into = [one for one in formula.flow.following(op) if isinstance(one, Collect)]
    if len(into) != 1 or into[0].key is None:
        return None, None
    return into[0], formula.flow.made.get(into[0].src)


def _of_items(formula: Formula, into: Collect, value: Op | None) -> CallMethod | None:
    """The state whose items a comprehension goes through, if it collects their values."""
    for loop in operations(formula.function.body):
        if isinstance(loop, For) and into in loop.body and isinstance(value, Load):
            items = formula.flow.made.get(loop.source)
            if isinstance(items, CallMethod) and items.name == "items":
                return _state(formula, items.base)
    return None


def _state(formula: Formula, temp: Temp) -> CallMethod | None:
    made = formula.flow.made.get(temp)
    return made if isinstance(made, CallMethod) and made.name == "state_dict" and not made.arguments else None


def _branch(formula: Formula, layout: Layout, op: Op) -> If | None:
    """The comparison under which it is taken: a better result than before."""
    for above, block in layout.above(op):
        if isinstance(above, If) and block is above.then and _compares(formula, above.test):
            return above
    return None


def _compares(formula: Formula, temp: Temp) -> bool:
    return any(isinstance(op, Compare) and op.operator in _ORDERS for op in formula.flow.behind(temp))


def _repeats(formula: Formula, layout: Layout, op: Op) -> bool:
    """Is it in a loop, or in a method without one, which somebody calls again and again?"""
    if any(isinstance(above, For | While) for above, _ in layout.above(op)):
        return True
    loops = (one for one in operations(formula.function.body) if isinstance(one, For | While))
    return formula.function.cls is not None and all(isinstance(one, For) and one.comprehension for one in loops)


def _restored(formula: Formula, target: str, branch: If, layout: Layout) -> Op | None:
    """Where the copy is put back, returned, or saved later on; None where it is not, or more is done with it."""
    found: Op | None = None
    cls = formula.function.cls if "." in target else None
    for one in map(formula.beside.of, cls.methods.values()) if cls is not None else [formula]:
        for op in operations(one.function.body):
            if not isinstance(op, Load | GetAttribute) or one.flow.path(op.dst) != target:
                continue
            for use in one.flow.taken.get(op.dst, ()):
                if isinstance(use, Return):
                    found = found or op
                elif isinstance(use, Call | CallMethod) and one.spelled(use).endswith(("load_state_dict", "save")):
                    at_once = one is formula and any(above is branch for above, _ in layout.above(use))
                    found = found if at_once else use
                elif not isinstance(use, Compare | If | Check):
                    return None
    return found


def _on_device(formula: Formula) -> Op | None:
    """Something that is brought to a device, in the function, else in its class."""
    cls = formula.function.cls
    for one in (formula, *(map(formula.beside.of, cls.methods.values()) if cls is not None else ())):
        moving = (op for op in operations(one.function.body) if isinstance(op, CallMethod))
        for op in moving:
            to_device = op.name == "to" and bool(op.arguments) and is_device(one.flow, op.arguments[0].temp)
            if op.name == "cuda" or to_device:
                return op
    return None
