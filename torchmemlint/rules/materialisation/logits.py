"""Logits over a vocabulary: of positions that nobody asks for, or as logarithms of which one for each token is used."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.flow.fact.extents import DIMENSIONS, is_wide
from torchmemlint.flow.fact.formulas import Formula
from torchmemlint.flow.fact.operands import Operation, Taking
from torchmemlint.flow.ir.blocks import Layout
from torchmemlint.flow.ir.control import For, While
from torchmemlint.flow.ir.ops import Call, CallMethod, Constant, GetAttribute, GetItem, Load, Make, Op, Operate, Unpack
from torchmemlint.flow.ir.places import Argument, ComputedKey, Scope, SliceKey, Spread, Temp
from torchmemlint.immutable import immutable
from torchmemlint.knowledge import torch_api
from torchmemlint.knowledge.contracts import Contracts

LOGITS = "logits"  # what the results of transformers' networks call them
_PAST = frozenset({"past_key_values", "past_key_value", "past", "layer_past", "cache_params", "past_kv"})
_LIMITED = frozenset({"logits_to_keep", "num_logits_to_keep"})  # they ask for some positions
_TRAINED = frozenset({"labels"})  # a loss is computed from all of them
_PREPARED = "prepare_inputs_for_generation"  # with a cache it leaves out what has been computed
_SAMPLING = frozenset({"softmax", "log_softmax", "argmax", "topk", "multinomial", "sort", "argsort"})
LAST = -1
_SHIFTED = "::"  # the layout of `x[:, 1:]`, and of what follows


@immutable()
class Whole:
    """A call that computes logits of all positions, of which each use takes one."""

    call: Op
    uses: tuple[Op, ...]
    is_last: bool  # are they all written as the last position?
    known: bool  # is the class of the network one of a library that has logits for every position?


@immutable()
class Looked:
    """A logarithm of probabilities of which nothing but one in each row is looked up."""

    log: Operation
    gather: Op
    cast: Op | None  # that makes another copy first
    is_vocabulary: bool  # do they follow one another as tokens do, or come from a network of transformers?


def whole(formula: Formula, call: Op, reads: list[GetAttribute], known: Contracts) -> Whole | None:
    """Return a call whose logits are read here and there, if each use takes one position."""
    if not isinstance(call, Call | CallMethod) or _is_limited(formula, call):
        return None
    is_known = is_language_model(formula, call, known)
    if is_known is False:
        return None
    uses = [use for read in reads for use in _uses(formula, read.dst)]
    taken = [_position(formula, use, bool(is_known)) for use in uses]
    layout = Layout(formula.function)
    around = set(_loops(layout, call))
    if not uses or None in taken or any(not around.issuperset(_loops(layout, use.by)) for use in uses):
        return None  # a loop takes one position after the other
    return Whole(call, tuple(use.by for use in uses), all(taken), bool(is_known))


def _loops(layout: Layout, op: Op) -> Iterator[Op]:
    return (one for one, _ in layout.above(op) if isinstance(one, For | While))


def looked_up(formula: Formula, log: Operation) -> Looked | None:
    """Return a logarithm of a softmax that only a lookup of one number in each row takes."""
    takings = formula.takings(log)
    gathers = [taking for taking in takings if taking.operation is not None and taking.operation.name == "gather"]
    if len(takings) != 1 or len(gathers) != 1 or gathers[0].index != 0 or not log.operands:
        return None
    gather = gathers[0].operation
    assert gather is not None
    if _is_of_one(formula, log):
        return None  # as large as the logits of one sequence, and no more
    index = gather.argument("index", 2)
    if index is None or not _is_one_each(formula, index):
        return None
    logits, cast = _before(formula, log.operands[0])
    made = formula.made(logits)
    named = isinstance(made, GetAttribute) and made.name == LOGITS
    shifted = _is_shifted(formula, log.operands[0]) and _is_shifted(formula, index)
    if not (named or shifted or is_wide(formula.flow, log.dst, index)):
        return None
    return Looked(log, gather.op, cast, named or shifted)


def _is_of_one(formula: Formula, log: Operation) -> bool:
    """Is it taken in a loop over sequences, of one after the other?"""
    made = formula.flow.made.get(log.operands[0])
    bound = formula.flow.bound.get(made.name.text, []) if isinstance(made, Load) else []
    items = {loop.item for loop in _loops(Layout(formula.function), log.op) if isinstance(loop, For)}
    parts = [formula.flow.made.get(temp) for temp in bound]
    return any(
        temp in items or (isinstance(part, Unpack) and part.src in items)
        for temp, part in zip(bound, parts, strict=True)
    )


def is_language_model(formula: Formula, call: Call | CallMethod, known: Contracts) -> bool | None:
    """Is what is called a network of a library that has logits for every position? None where its class is not seen."""
    name = _class(formula, call)
    return name in known.names("wide-outputs") if name.startswith("transformers.") else None


def _class(formula: Formula, call: Call | CallMethod) -> str:
    """Return the class of the network that is called; "" where it is not seen."""
    if isinstance(call, Call):
        temp = call.callee
    else:
        stored = formula.attribute(call.base, call.name)
        return _made(*stored[0]) if len(stored) == 1 else ""
    return _made(formula, temp)


def _made(formula: Formula, temp: Temp, steps: int = 8) -> str:
    """Return the class that an object was made of, by way of names, attributes and methods that return it."""
    op = formula.made(temp)
    if not steps:
        return ""
    match op:
        case Load(name=name) if name.scope is Scope.GLOBAL:
            found = formula.beside.constant(name.text)
            return _made(*found[0], steps - 1) if len(found) == 1 else ""
        case GetAttribute():
            found = formula.stored(temp)
            return _made(*found[0], steps - 1) if len(found) == 1 else ""
        case Call(callee=callee):
            return formula.name(callee)
        case CallMethod(base=base, name="from_pretrained" | "from_config"):
            return formula.name(base)
        case CallMethod(base=base):
            return _made(formula, base, steps - 1)
    return ""


def _is_limited(formula: Formula, call: Call | CallMethod) -> bool:
    """Is it asked for some positions, for a loss of all, or to go on with one token where a cache has the others?"""
    names = {one.name for one in call.arguments if one.spread is Spread.NAMED}
    if not names.isdisjoint(_LIMITED | _TRAINED) or any(_goes_on(formula, one) for one in call.arguments):
        return True
    spread = any(one.spread in (Spread.STAR, Spread.STARS) for one in call.arguments)
    mentions = formula.function.mentions
    return spread and not mentions.isdisjoint(_PAST | _LIMITED | {_PREPARED})


def _goes_on(formula: Formula, one: Argument) -> bool:
    made = formula.made(one.temp)
    is_none = isinstance(made, Constant) and made.value is None
    return one.spread is Spread.NAMED and one.name in _PAST and not is_none


def _uses(formula: Formula, temp: Temp) -> list[Taking]:
    """All uses of logits, behind what only changes their type or place."""
    found: list[Taking] = []
    for use in formula.uses(temp):
        op = use.by
        if isinstance(op, CallMethod) and op.base == use.temp and op.name in torch_api.SAME_DIMENSIONS:
            found += _uses(formula, op.dst)
        else:
            found.append(use)
    return found


def _position(formula: Formula, use: Taking, is_known: bool) -> bool | None:
    """Does a use take the last position? False for another one, None where it takes more or may be no position."""
    op = use.by
    if not isinstance(op, GetItem) or op.base != use.temp:
        return None
    match op.key:
        case SliceKey(layout=layout, parts=parts) if layout[1:2] in ("0", "#") and layout[0] in ":0#":
            is_last = layout[1] == "0" and LAST in map(formula.integer, parts)
            shows = len(layout) >= DIMENSIONS or (is_last and (is_known or _is_row(formula, op)))
            return is_last if shows else None
        case ComputedKey(temp=temp):
            made = formula.made(temp)
            if isinstance(made, Make) and len(made.entries) > 1 and (is_known or _is_row(formula, op)):
                return formula.integer(made.entries[1].temp) == LAST
    return None


def _is_row(formula: Formula, op: GetItem) -> bool:
    """Does what is done with a part show that it is a row for each example?"""
    for use in _uses(formula, op.dst):
        if use.operation is not None and use.operation.name in _SAMPLING and use.index == 0:
            return True
        if isinstance(use.by, GetItem) and isinstance(use.by.key, SliceKey) and use.by.key.dimensions > 1:
            return True
    return False


def _is_one_each(formula: Formula, index: Temp) -> bool:
    """Does an index of a lookup have one entry for each row: `labels.unsqueeze(-1)`, `labels[..., None]`?"""
    match formula.made(index):
        case CallMethod(name="unsqueeze"):
            return True
        case GetItem(key=SliceKey(layout=layout)):
            return layout.endswith("+")
        case CallMethod(base=base, name="to" | "long" | "cuda"):
            return _is_one_each(formula, base)
    made = formula.of(index)
    return made is not None and made.name == "unsqueeze"


def _before(formula: Formula, temp: Temp) -> tuple[Temp, Op | None]:
    """Return logits before they were cast, cut, moved or scaled, and what casts them to more bits."""
    cast: Op | None = None
    while True:
        op = formula.made(temp)
        match op:
            case CallMethod(base=base, name="float" | "double"):
                cast = op
            case CallMethod(base=base, name="to", arguments=arguments):
                wide = any(formula.name(one.temp) in ("torch.float32", "torch.float") for one in arguments)
                cast = op if wide else cast
            case GetItem(base=base, key=SliceKey()) | CallMethod(base=base, name="contiguous"):
                pass
            case Operate(operator="/", operands=(base, _)):
                pass
            case _:
                return temp, cast
        temp = base


def _is_shifted(formula: Formula, temp: Temp) -> bool:
    """Is it computed from all positions but one end: `x[:, :-1]`, `x[:, 1:]`?"""
    for op in formula.flow.origins(temp):
        if isinstance(op, GetItem) and isinstance(op.key, SliceKey) and op.key.layout.startswith(_SHIFTED):
            return True
    return False
