"""Hooking: hooks that are registered again and again on what lasts, and that nothing removes.

A module has its hooks until their handles remove them. Where a function registers one each time it is called, the
module comes to hold, and to run, all of them, with whatever they close over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from itertools import dropwhile, islice, takewhile

from torchmemlint.doubts import Doubt
from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.heap import ELEMENT, reachable
from torchmemlint.flow.domain.refs import Behind, Globals, Input, Loop, Object, Parameters, Point, Ref, Result, root
from torchmemlint.flow.fact.evidence import Evidence
from torchmemlint.flow.fact.logs import Event, Run
from torchmemlint.flow.fact.outcomes import Case
from torchmemlint.flow.fact.owners import Registered
from torchmemlint.flow.fact.places import Places
from torchmemlint.flow.fact.sequence import Sequence
from torchmemlint.flow.ir.blocks import is_inside, layout_of, operations
from torchmemlint.flow.ir.control import Enter, If
from torchmemlint.flow.ir.defuse import definitions, operands
from torchmemlint.flow.ir.ops import Call, CallMethod, Class, Function, Load, Op, Unit
from torchmemlint.flow.ir.places import Temp
from torchmemlint.flow.models.hooks import HANDLE

_TABLES = frozenset("_forward_hooks _forward_pre_hooks _backward_hooks _backward_pre_hooks".split())


class Hooks:
    """The hooks that some runs register, and what may remove them."""

    def __init__(self, units: Iterable[Unit], done: Iterable[tuple[Run, Evidence]]) -> None:
        self.units = list(units)
        self.seen = [(run, evidence) for run, evidence in done if run.of(fx.Hooked)]
        self.removed = {handle.site for run, _ in done if self.seen for handle in _removed(run)}

    @cached_property
    def are_removed(self) -> bool:
        """Is there code that may remove hooks?"""
        return any(self.may_be_removed(hooked) for run, _ in self.seen for hooked in run.effects(fx.Hooked))

    def may_be_removed(self, hooked: fx.Hooked) -> bool:
        """Is a hook removed, or is there code that may do so? A handle that nothing takes removes none."""
        op = hooked.point.site
        if not isinstance(op, CallMethod) or op in self.removed:
            return True
        if any(isinstance(one, Enter) for one in definitions(op.owner).following(op)):
            return True
        if any(not function.mentions.isdisjoint(_TABLES) for function in op.owner.unit.functions):
            return True
        return self._is_left_to_be(op)

    def is_removed(self, hooked: fx.Hooked) -> bool:
        """Is a hook removed: its handle by itself, or with others that were kept for that?"""
        op = hooked.point.site
        return op in self.removed or (isinstance(op, CallMethod) and self._is_left_to_be(op))

    def _is_left_to_be(self, op: CallMethod) -> bool:
        """Is the handle taken, and is there code that removes some?"""
        return not op.dropped and any(_removes(f) for unit in {op.owner.unit, *self.units} for f in unit.functions)


def registered(places: Places, hooks: Hooks) -> Iterator[Case]:
    """Yield where hooks are registered that come to be more and more."""
    for run, evidence in hooks.seen:
        owners: dict[Ref, set[Ref]] = {}
        for hooked in run.effects(fx.Hooked):
            owners.setdefault(hooked.handle, set()).add(hooked.owner)
        for event, hooked in run.met(fx.Hooked):
            if not hooks.may_be_removed(hooked) and hooked.handle not in run.given():
                yield from _cases(places, run, evidence, event, hooked, len(owners[hooked.handle]) > 1)


def _cases(
    places: Places, run: Run, evidence: Evidence, event: Event, hooked: fx.Hooked, several: bool
) -> Iterator[Case]:
    """Yield a case where the same thing is given one more hook each time. `several`: or each of several things is."""
    owner = hooked.owner.module if type(hooked.owner) is Parameters else hooked.owner
    life = run.life or frozenset()
    about = Registered(hooked.kind)
    around = [effect.loop for effect in event.around if isinstance(effect, fx.Repeat)]
    through = {loop for loop in around if not _outlasts(run, owner, loop)}
    deciding = {loop for loop in around if _depends(hooked.point, loop)}
    through |= deciding.intersection(around[-1:] if several else ())
    parts = through | (deciding if through or _is_item(owner) else set())  # one hook for each
    for loop in around:
        if isinstance(loop.site, Op) and loop not in parts | life and not _is_chosen(event, loop):
            yield places.at(hooked.point, "TML802", evidence.cut, loop=places.of(loop.site), about=about)
            return
    is_tested = any(
        isinstance(effect, fx.Fork) for effect in takewhile(lambda one: not _is_of(one, parts), event.around)
    )
    is_once = run.entry.parent is None or is_tested or event.loops - life - parts or _is_making(run, hooked.point)
    if not is_once and _runs_it(run, event, owner):
        doubts = set() if run.method_of is not None and run.entry.name == "forward" else {Doubt.ONCE}
        yield places.at(hooked.point, "TML802", evidence.cut | doubts, about=about)


def _is_of(effect: fx.Effect, loops: set[Loop]) -> bool:
    """Is it what is repeated by one of some loops?"""
    return isinstance(effect, fx.Repeat) and effect.loop in loops


def _is_making(run: Run, point: Point) -> bool:
    """Does it happen when an object is made that nobody was seen to make?"""
    return run.entry.name == "__init__" or any(isinstance(site, Class) for site in point.context)


def _is_chosen(event: Event, loop: Loop) -> bool:
    """Does a test of the loop itself, and not of one within it, decide whether it happens?"""
    inside = dropwhile(lambda effect: not (isinstance(effect, fx.Repeat) and effect.loop is loop), event.around)
    return isinstance(next(islice(inside, 1, None), None), fx.Fork)


def _depends(point: Point, loop: Loop) -> bool:
    """Does what a loop goes through decide what is given a hook, or which one?"""
    if not isinstance(loop.site, Op):
        return False
    start = loop.site.owner
    told: set[str] = set()  # the parameters of the function at hand that depend on it
    ops = list(dropwhile(lambda op: op.owner is not start, reversed(point.chain())))
    if not ops:
        return True  # only the innermost calls and the outermost one are known, and the loop is in one between
    for op, inner in zip(ops, [*ops[1:], None], strict=True):
        is_told = partial(_is_told, op.owner, loop, told)
        if any(map(is_told, _deciding(op, loop))) or (inner is None and any(map(is_told, operands(op)))):
            return True
        told = set(_handed(op, inner.owner, is_told)) if inner is not None else set()
    return False


def _is_told(function: Function, loop: Loop, told: set[str], temp: Temp) -> bool:
    """Is a value of a function made of what the loop goes through, or of parameters that are?"""
    behind = definitions(function).origins(temp)
    return any(one is loop.site or (isinstance(one, Load) and one.name.text in told) for one in behind)


def _deciding(op: Op, loop: Loop) -> Iterator[Temp]:
    """Yield the tests that decide whether an operation is reached in an iteration."""
    around = takewhile(lambda one: one is not loop.site, (one for one, _ in layout_of(op.owner).above(op)))
    return (one.test for one in around if isinstance(one, If))


def _handed(op: Op, function: Function, is_told: Callable[[Temp], bool]) -> Iterator[str]:
    """Yield the parameters of a function that a call gives what fits a test."""
    names = [parameter.name for parameter in function.parameters]
    is_nested = op.owner is function.parent and op.owner.parent is not None
    if not isinstance(op, Call | CallMethod) or is_nested:
        yield from names  # a function within another sees its variables
        return
    positional = names[1:] if function.receiver is not None else names
    for number, given in enumerate(op.arguments):
        if is_told(given.temp):
            yield from [given.name] if given.name in names else positional[number : number + 1] or names
    if isinstance(op, CallMethod) and function.receiver is not None and is_told(op.base):
        yield names[0]


def _outlasts(run: Run, owner: Ref, loop: Loop) -> bool:
    """Is it the same thing in all iterations: neither made in the loop, nor one of those that the loop goes through?"""
    begin = root(owner)
    sites = (getattr(begin, "site", None), *getattr(begin, "context", ()))
    if type(begin) is Result or (isinstance(loop.site, Op) and is_inside(sites, loop.site)):
        return False
    through = reachable(run.state, run.over[loop].refs) if loop in run.over else set()
    return not any(_is_part(owner, whole) for whole in through)


def _is_part(owner: Ref, whole: Ref) -> bool:
    """Is it the same thing, or an item of it?"""
    if owner is whole:
        return True
    if type(owner) is Behind:
        return _is_part(owner.base, whole)
    if type(owner) is Object and type(whole) is Object and isinstance(owner.about, str):
        return owner.site is whole.site and owner.kind is whole.kind and owner.about.startswith(f"{whole.about}[")
    return False


def _is_item(owner: Ref) -> bool:
    """Is it an item, or one of several that a loop made: perhaps another one each time?"""
    if type(owner) is Behind:
        return owner.key is ELEMENT or isinstance(owner.key, Ref) or _is_item(owner.base)
    if type(owner) is not Object:
        return False
    made_at = (site for site in (owner.site, *owner.context) if isinstance(site, Op))
    is_in_loop = any(any(layout_of(site.owner).loops(site)) for site in made_at)
    return is_in_loop or (isinstance(owner.about, str) and "[]" in owner.about)


def _runs_it(run: Run, event: Event, owner: Ref) -> bool:
    """Does whoever registers it then run the network that it was registered on, which somebody else has made?"""
    begin, sequence = root(owner), Sequence(run)
    lasts = type(begin) in (Input, Globals) or begin is run.receiver or _is_of_file(begin)
    if not lasts:
        return False
    calls = [(met, call.callee.refs) for met, call in run.met(fx.Invoke)]
    return any(
        sequence.is_after(met, event) and any(root(r) is begin for r in refs) for met, refs in (*calls, *run.passes())
    )


def _is_of_file(reference: Ref) -> bool:
    """Is it made by the body of a file?"""
    site = getattr(reference, "site", None)
    return isinstance(site, Op) and site.owner.parent is None and not getattr(reference, "context", ())


def _removed(run: Run) -> Iterator[Object]:
    """Yield the handles that are asked to remove their hooks, or handed to code that may do so."""
    for call in run.unseen():
        values = call.arguments.all()
        if isinstance(call, fx.InvokeMethod) and call.name == "remove":
            values.append(call.receiver)
        for reference in (r for value in values for r in reachable(run.state, value.refs)):
            if type(reference) is Object and reference.about == HANDLE:
                yield reference


def _removes(function: Function) -> bool:
    """Is there a call like that of a handle? That of a list is given what to remove."""
    if "remove" not in function.mentions:
        return False
    calls = (op for op in operations(function.body) if isinstance(op, CallMethod) and op.name == "remove")
    return any(not call.arguments for call in calls)
