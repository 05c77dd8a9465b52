"""Control flow: blocks, branches, loops, handlers, contexts, and what leaves them."""

from __future__ import annotations

from torchmemlint.flow.domain.arguments import Arguments
from torchmemlint.flow.domain.effects import Fork
from torchmemlint.flow.domain.frame import CallSite, Frame, Transfer
from torchmemlint.flow.domain.heap import BOXES, Mode, State
from torchmemlint.flow.domain.kinds import Kind
from torchmemlint.flow.domain.manners import Reading
from torchmemlint.flow.domain.memory import escape
from torchmemlint.flow.domain.refs import Loop
from torchmemlint.flow.domain.values import UNKNOWN, Value, join
from torchmemlint.flow.engine import access, conditions
from torchmemlint.flow.engine.loops import run_loop, skipped
from torchmemlint.flow.engine.narrowing import narrow
from torchmemlint.flow.engine.places import detach_around
from torchmemlint.flow.engine.transfer import SIMPLE, value_of
from torchmemlint.flow.ir import ops
from torchmemlint.flow.ir.blocks import missed
from torchmemlint.flow.ir.control import Break, Continue, Enter, For, If, Raise, Return, Try, While, With
from torchmemlint.flow.ir.places import Name
from torchmemlint.flow.models import containers, guards

_THROWN = BOXES | {Kind.INSTANCE, Kind.OPAQUE}  # what an exception was made with, and what was set on it
_UNROLLED = 4  # items of a loop over constants that are run one by one


def run_block(frame: Frame, state: State, block: list[ops.Op]) -> None:
    """Run operations until a path ends."""
    for op in block:
        if state.dead:
            return
        TABLE[type(op)](frame, state, op)


def _if(frame: Frame, state: State, op: If) -> None:
    test = frame.temps[op.test]
    known = conditions.truth(state, test)
    if test.graph:
        frame.read(test.graph, Reading.NUMBER)
    if known is not None:
        narrow(frame, state, op.narrowings, known)
        run_block(frame, state, op.then if known else op.orelse)
        return
    outer, frame.effects = frame.effects, []
    other = state.copy()
    narrow(frame, state, op.narrowings, True)
    frame.often += op.often
    run_block(frame, state, op.then)
    frame.often -= op.often
    then, frame.effects = frame.effects, []
    chosen = op.then[-1] if op.then else None
    given = frame.temps[chosen.dst] if isinstance(chosen, ops.Move) else None  # of a conditional expression
    narrow(frame, other, op.narrowings, False)
    run_block(frame, other, op.orelse)
    orelse, frame.effects = frame.effects, outer
    if isinstance(chosen, ops.Move) and given is not None and not state.dead:
        frame.temps[chosen.dst] = given if other.dead else join(given, frame.temps[chosen.dst])
    state.join(other)
    if then or orelse:
        frame.log(Fork(frame.at(op), test, then, orelse))


def _for(frame: Frame, state: State, op: For) -> None:
    source, point = frame.temps[op.source], frame.at(op)
    items = _constants(state, source)
    if items is not None:
        for item in items:
            frame.temps[op.item] = item
            _once(frame, state, op.body)
            if state.dead:
                return
        run_block(frame, state, op.orelse)
        return

    def body(inside: State) -> None:
        frame.temps[op.item] = access.advance(frame, inside, source, point)
        run_block(frame, inside, op.body)

    run_loop(frame, state, Loop.of(op, frame.context), body)
    if "detach_" in frame.function.mentions and _detaches(op):
        detach_around(frame, state, op.source, point, every=True)
    run_block(frame, state, op.orelse)


def _detaches(op: For) -> bool:
    """Does a loop detach each item in place?"""
    names = {one.name.text for one in op.body if isinstance(one, ops.Bind) and one.src == op.item}
    calls = (one.place for one in op.body if isinstance(one, ops.CallMethod) and one.name == "detach_")
    return any(isinstance(place, Name) and place.text in names for place in calls)


def _constants(state: State, source: Value) -> list[Value] | None:
    """Return the items of a loop over a few texts or flags that are written out: `for phase in ["train", "val"]`."""
    items = containers.written_out(state, source)
    if items is None or not 0 < len(items) <= _UNROLLED:
        return None
    return items if all(item.known and isinstance(item.constant, str | bool) for item in items) else None


def _once(frame: Frame, state: State, block: list[ops.Op]) -> None:
    """Run a block as the only iteration of a loop."""
    frame.breaks.append([])
    frame.continues.append([])
    run_block(frame, state, block)
    for other in (*frame.continues.pop(), *frame.breaks.pop()):
        state.join(other)


def _while(frame: Frame, state: State, op: While) -> None:
    forever = [False]

    def body(inside: State) -> None:
        run_block(frame, inside, op.head)
        test = frame.temps[op.test]
        forever[0] = conditions.truth(inside, test) is True
        if test.graph:
            frame.read(test.graph, Reading.NUMBER)
        run_block(frame, inside, op.body)

    run_loop(frame, state, Loop.of(op, frame.context), body)
    if forever[0]:
        return
    run_block(frame, state, op.head)
    run_block(frame, state, op.orelse)


def _try(frame: Frame, state: State, op: Try) -> None:
    before, guarded = state.copy(), frame.guarded
    outer, frame.effects = frame.effects, []
    frame.raised.append([])
    run_block(frame, state, op.body)
    retries = frame.guarded > guarded  # what fails without gradients is done with them
    raised = frame.raised.pop()
    for other in raised:
        before.join(other)
    after = state.copy()
    run_block(frame, state, op.orelse)
    main, frame.effects = frame.effects, outer
    frame.effects.extend(main)
    for handler in op.handlers:
        frame.effects = []
        path = before.copy()
        path.join(after)
        path.dead = False
        frame.temps[handler.caught] = UNKNOWN
        mode = path.mode
        if retries and mode is not Mode.OFF:
            path.mode = Mode.WANTED
        outside, frame.missing = frame.missing, frame.missing | missed(op)
        run_block(frame, path, handler.body)
        frame.missing = outside
        path.mode = mode if path.mode is Mode.WANTED else path.mode
        handled, frame.effects = frame.effects, outer
        state.join(path)
        if handled:
            frame.log(Fork(frame.at(op), UNKNOWN, handled, []))
    if op.final:
        dead, state.dead = state.dead, False
        run_block(frame, state, op.final)
        state.dead = state.dead or dead


def _with(frame: Frame, state: State, op: With) -> None:
    saved = state.mode
    run_block(frame, state, op.body)
    dead, state.dead = state.dead, False
    for temp in reversed(op.contexts):
        guards.leave(CallSite(frame, state, frame.at(op), Arguments()), frame.temps[temp])
        saved = guards.mode_before(frame, frame.temps[temp], saved, frame.at(op))
    state.dead = dead
    state.mode = saved


def _enter(frame: Frame, state: State, op: Enter) -> None:
    site = CallSite(frame, state, frame.at(op), Arguments())
    frame.temps[op.dst] = guards.enter(site, frame.temps[op.context])
    frame.guarded += state.mode is Mode.OFF


def _return(frame: Frame, state: State, op: Return) -> None:
    value = value_of(frame, op.src)
    if frame.function.generator:
        escape(frame, state, [value], frame.at(op))  # `StopIteration` carries it
    frame.returned = join(frame.returned, value)
    frame.exits.append(state.copy())
    state.dead = True


def _break(frame: Frame, state: State, op: Break) -> None:
    if frame.breaks:
        frame.breaks[-1].append(state.copy())
    state.dead = True


def _continue(frame: Frame, state: State, op: Continue) -> None:
    if frame.continues:
        if frame.loops:
            skipped(frame, state, frame.at(op))
        frame.continues[-1].append(state.copy())
    state.dead = True


def _raise(frame: Frame, state: State, op: Raise) -> None:
    escape(frame, state, [frame.temps[src] for src in op.carried], frame.at(op), _THROWN)
    if frame.raised:
        frame.raised[-1].append(state.copy())
    state.dead = True


TABLE: dict[type[ops.Op], Transfer] = {
    **SIMPLE,
    If: _if,
    For: _for,
    While: _while,
    Try: _try,
    With: _with,
    Enter: _enter,
    Return: _return,
    Break: _break,
    Continue: _continue,
    Raise: _raise,
}
