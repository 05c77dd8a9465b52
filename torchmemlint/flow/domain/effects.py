"""Effects: what a caller must know of a call, in the order in which it happens.

A function is run once with symbols for its inputs. At a call they become what the caller has, and each effect is done
there, as a statement would be: a loop of the caller repeats what a callee stores, and calls a callback of the caller.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from torchmemlint.flow.domain.arguments import Arguments
from torchmemlint.flow.domain.heap import Mode, ModeOf
from torchmemlint.flow.domain.manners import Given, How, Reading, Remark, Reset, Stored
from torchmemlint.flow.domain.refs import Derived, Graph, Key, Loop, Phi, Place, Point, Ref, Result, Slot, Source
from torchmemlint.flow.domain.values import NOTHING, TRUE, Value
from torchmemlint.flow.ir.ops import Function


class Evidence(enum.Enum):
    """What the use of an unknown object shows of it."""

    TENSOR = "tensor"  # used as only a tensor can be
    MODULE = "module"  # used as only a module can be
    EVALUATING = "eval"  # eval() was called
    TRAINING = "train"  # train() was called
    RESTORED = "restored"  # put back into the mode that it was in before
    LOSS = "loss"  # given to a loss function
    DETACHED = "detached"  # the program says that it has a graph
    TAUGHT = "taught"  # its gradients are used, by an optimizer or otherwise: parameters, or what they are behind
    STATE = "state"  # has a state that is saved or loaded
    MOVED = "moved"  # .to(device), .cuda(): a tensor or a module
    GRADIENT = "gradient"  # its gradient was read
    HANDED = "handed"  # given to a function of a library, which may do anything with it


@dataclass(slots=True, eq=False)
class Effect:
    """Something that happened at a point."""

    point: Point


@dataclass(slots=True, eq=False)
class Write(Effect):
    """`value` was put under a key of a symbolic holder, as an `item` or attribute.

    `weak`: beside what stands there, as one more element.
    """

    holder: Ref
    key: Key
    value: Value
    weak: bool
    item: bool = False


@dataclass(slots=True, eq=False)
class Erase(Effect):
    """A holder gives up what it holds: all of it (`key` is None), or what stands under a key."""

    key: Key | None
    holder: Ref


@dataclass(slots=True, eq=False)
class Invoke(Effect):
    """A call of something symbolic."""

    callee: Value
    arguments: Arguments
    mode: Mode | ModeOf
    result: Result
    evaluating: bool = False  # was eval() called on the callee last?


@dataclass(slots=True, eq=False)
class InvokeMethod(Effect):
    """A call of a method of something symbolic."""

    receiver: Value
    name: str
    arguments: Arguments
    mode: Mode | ModeOf
    result: Result
    evaluating: bool = False  # was eval() called on the receiver last?


@dataclass(slots=True, eq=False)
class Load(Effect):
    """A place behind a symbol was read after calls that may have written it: `item` by `[key]`, else by `.key`.

    What stands there may be made then, by a generator or a property, in the gradient mode of that moment.
    """

    key: Key
    base: Value
    item: bool
    mode: Mode | ModeOf
    result: Result


@dataclass(slots=True, eq=False)
class Renew(Effect):
    """A loop of the callee begins another object of a site, or has another item, in every iteration.

    A generator makes the item then, in the gradient mode of that moment.
    """

    made: Ref
    mode: Mode | ModeOf = Mode.CALLER


@dataclass(slots=True, eq=False)
class Forward(Effect):
    """A module with parameters was run, and `graph` begins, if the mode allows it."""

    module: Value
    inputs: frozenset[Source]
    mode: Mode | ModeOf
    graph: Graph
    evaluating: bool = False  # was eval() called on the module last?
    given: Given | None = None  # by which argument it is handed a graph


@dataclass(slots=True, eq=False)
class Ran(Effect):
    """A module was run that records no graph there."""


@dataclass(slots=True, eq=False)
class Infer(Effect):
    """A module with parameters was run with gradients off."""

    module: Value
    evaluating: bool = False  # was eval() called on it last?


@dataclass(slots=True, eq=False)
class Derive(Effect):
    """An operation on what the caller knows, or a library's that was not seen; without gradients there is no graph.

    `copies`: it saves nothing. `sums`: it is a weighted sum.
    """

    inputs: frozenset[Source]
    mode: Mode | ModeOf
    node: Derived
    copies: bool = False
    sums: bool = False


@dataclass(slots=True, eq=False)
class Bend(Effect):
    """Something was computed of these sources that is no weighted sum of them."""

    sources: frozenset[Source]


@dataclass(slots=True, eq=False)
class Compute(Effect):
    """With gradients on, something was computed of what a caller gave."""

    source: Source


@dataclass(slots=True, eq=False)
class Differentiate(Effect):
    """A backward pass through these sources. `creates`: the gradients have a graph.

    `asked`: the call says itself that the graph is to be kept. `named`: are the gradients not returned, but in `.grad`?
    """

    sources: frozenset[Source]
    retains: bool
    creates: bool
    asked: bool = False
    named: bool = True
    ends: frozenset[Source] = frozenset()  # it goes no further than to these


@dataclass(slots=True, eq=False)
class Read(Effect):
    """These sources were read, not differentiated."""

    sources: frozenset[Source]
    reading: Reading


@dataclass(slots=True, eq=False)
class Use(Effect):
    """A symbolic reference was used in a way that shows what it is."""

    reference: Ref
    evidence: Evidence


@dataclass(slots=True, eq=False)
class Keep(Effect):
    """A place grows with each iteration of a loop.

    `reset`: does the loop also empty it under some condition? `read`: are numbers of what it keeps read each time?
    """

    place: Place
    sources: frozenset[Source]  # of what is stored
    events: frozenset[Source]  # those of what comes round that come into being in each iteration
    came_round: frozenset[Source]  # of what the place holds at the end of the iteration
    phi: Phi
    spent: frozenset[Source]  # those of the events that backward has run through when the iteration ends
    how: How
    loop: Loop
    reset: Reset
    read: bool
    stored: Stored


@dataclass(slots=True, eq=False)
class Hold(Effect):
    """When a loop comes round, or at a `continue`, variables still hold what the iteration has made."""

    held: tuple[tuple[str, frozenset[Source]], ...]


@dataclass(slots=True, eq=False)
class Slotted(Effect):
    """A graph was stored in a slot: it stays there until it is replaced."""

    slot: Slot
    sources: frozenset[Source]
    how: How
    repeated: bool  # in a loop, or in a function that is called again
    stored: Stored


@dataclass(slots=True, eq=False)
class Put(Effect):
    """Something with a graph was put into a container, by what a call led to; attributes of these names hold it."""

    sources: frozenset[Source]
    names: frozenset[str]
    escapes: bool = False  # with an exception, or by an iterator that goes on elsewhere: who gets it is not followed


@dataclass(slots=True, eq=False)
class Freeze(Effect):
    """`requires_grad` of a module's parameters, or of a tensor, was set to the flag."""

    reference: Ref
    flag: Value
    assigned: bool = False  # as an attribute, which a module does not look at


@dataclass(slots=True, eq=False)
class Note(Effect):
    """Something remarkable happens, if a flag holds that perhaps only a caller knows.

    Where a caller says that it holds, it happens by its call, `within` what that leads to.
    """

    what: Remark
    flag: Value = TRUE
    within: Point | None = None
    of: Value = NOTHING  # to what
    mode: Mode | ModeOf = Mode.ON


@dataclass(slots=True, eq=False)
class Move(Effect):
    """A tensor, or what something gives, is brought to the host or to an accelerator.

    `of`: nothing, where it is created there. `device`: which one, as far as that is given. `waits`: could it be asked
    not to wait, and is not? `as_given`: is it what something that only a caller may know gave, and nothing that was
    computed from it?
    """

    of: Value
    to_host: bool
    device: Value = NOTHING
    waits: bool = False
    as_given: bool = False


@dataclass(slots=True, eq=False)
class Serve(Effect):
    """A function was called that manages memory, watches the program, loads data, or reads, saves or copies states.

    Of a method, the receiver is the first argument.
    """

    name: str  # qualified, but for a method's
    arguments: Arguments


@dataclass(slots=True, eq=False)
class Remember(Effect):
    """A function was called whose decorator keeps what it is given, a method's object too: by the parameters' names."""

    function: Function
    arguments: Arguments


@dataclass(slots=True, eq=False)
class SetMode(Effect):
    """The gradient mode changes until it is set again, or until the function of a decorator or context ends."""

    mode: Mode | ModeOf


@dataclass(slots=True, eq=False)
class Register(Effect):
    """A hook was registered on a symbolic module or tensor."""

    owner: Ref
    hook: Value
    kind: str  # the method's name


@dataclass(slots=True, eq=False)
class Hooked(Effect):
    """A module, or its parameters, hold one hook more, as long as nothing asks the handle to remove it."""

    owner: Ref
    kind: str  # the method's name
    handle: Ref
    hook: Value


@dataclass(slots=True, eq=False)
class Circle(Effect):
    """What is made at this point, an object or a function, holds itself when the function that made it ends.

    `way`: who holds the next, and under which key. `sole`: is there nothing else that one of them may hold instead?
    """

    way: tuple[tuple[Ref, Key], ...]
    networks: tuple[Point, ...]  # and optimizers that it holds, too: where they are made
    holds: Value  # and what else it holds that a caller may know
    sources: frozenset[Source]  # of the tensors that a function holds
    sole: bool


@dataclass(slots=True, eq=False)
class Hoard(Effect):
    """What was made at this point in earlier iterations is still held by a container when the function ends."""

    networks: tuple[Point, ...]  # those that it is, or holds
    variable: str  # that the container is held by


@dataclass(slots=True, eq=False)
class Step(Effect):
    """An optimizer's step, or `zero_grad` of an optimizer, a module or its parameters."""

    holder: Value
    name: str


@dataclass(slots=True, eq=False)
class Returned(Effect):
    """A value left the entry of the analysis: its caller is not known."""

    sources: frozenset[Source]


@dataclass(slots=True, eq=False)
class Repeat(Effect):
    """The effects of one iteration of a loop. `places`: what the loop is known to write. `over`: what it runs over."""

    loop: Loop
    over: Value
    effects: list[Effect]
    places: tuple[Place, ...]
    bounded: bool = False  # by a few things that are written out
    is_still: bool = False  # do they leave the state as it is?


@dataclass(slots=True, eq=False)
class Fork(Effect):
    """The effects of the branches of a test."""

    test: Value
    then: list[Effect]
    orelse: list[Effect]
    is_still: bool = False  # as above


# They change nothing that an object holds, and need no work.
TAKEN_DOWN = frozenset({Bend, Circle, Compute, Hoard, Hold, Hooked, Move, Put, Ran, Remember})


def each(effects: Iterable[Effect]) -> Iterator[Effect]:
    """Yield effects with those in loops and branches, in order."""
    for effect in effects:
        yield effect
        if isinstance(effect, Repeat):
            yield from each(effect.effects)
        elif isinstance(effect, Fork):
            yield from each((*effect.then, *effect.orelse))
