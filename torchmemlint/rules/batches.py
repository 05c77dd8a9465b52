"""What runs for every batch: found by a loader's batches, by a step that a loop runs, or by who calls the function."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from torchmemlint.flow.facts import Backward, FileFacts, GuardedCall, ModuleCall, ServiceCall
from torchmemlint.flow.values import LoopMark
from torchmemlint.rules.findings import Link
from torchmemlint.rules.steps import always, covers
from torchmemlint.syntax.outline import dotted_text


def per_batch(facts: FileFacts, call: ServiceCall) -> Link | None:
    """What shows that the call runs for every batch."""
    loop = next((mark for mark in reversed(call.scope.loops) if mark.node is not None), None)
    if loop is None or loop.site is None:
        if call.per_batch and call.scope.function is not None and always(call.tests):
            function = call.scope.function
            return call.site, f"`{function.name}` is called for every batch"
        return None
    followed = not covers(loop.site, call.site.node)  # from the loop into a function, which has conditions of its own
    if not always([test for test in call.tests if followed or covers(loop.site, test[0])]):
        return None
    for iteration in facts.loader_iterations:
        if isinstance(loop.node, cst.For) and covers(loop.site, iteration.site.node, head=True):
            if _works_through_items(facts, loop):
                return None
            return iteration.site, "the loop runs over the batches of a loader"
    return _step_in(facts, loop)


def _works_through_items(facts: FileFacts, loop: LoopMark) -> bool:
    """Is what the loader gives a long item, a video say, that models run through in loops of their own?"""
    if any(loop in backward.scope.loops for backward in facts.backwards):
        return False
    passes: Sequence[ModuleCall | GuardedCall] = [*facts.module_calls, *facts.guarded_calls]
    inside = [one for one in passes if loop in one.scope.loops]
    return any(isinstance(one.scope.loops[-1].node, cst.For | cst.While) and _is_deeper(one, loop) for one in inside)


def stands_in_loop(call: ServiceCall) -> bool:
    """Is it in a loop, its caller's included?"""
    return any(mark.node is not None for mark in call.scope.loops)


def _step_in(facts: FileFacts, loop: LoopMark) -> Link | None:
    """A backward or forward pass that the loop itself runs, and none of the loops in it."""
    passes: Sequence[Backward | ModuleCall | GuardedCall] = [
        *facts.backwards,
        *facts.module_calls,
        *facts.guarded_calls,
    ]
    inside = [one for one in passes if loop in one.scope.loops]
    if any(_is_deeper(one, loop) for one in inside):
        return None
    for one in inside:
        if isinstance(one, Backward):
            return one.site, "the loop runs a backward pass each time"
    for one in inside:
        if not isinstance(one, Backward) and not _another_each_time(one, loop):
            return one.site, "the loop runs a model each time"
    return None


def _is_deeper(one: Backward | ModuleCall | GuardedCall, loop: LoopMark) -> bool:
    """Does it stand in a loop within this one?"""
    innermost = one.scope.loops[-1]
    return innermost is not loop and innermost.node is not loop.node


def _another_each_time(call: ModuleCall | GuardedCall, loop: LoopMark) -> bool:
    """Is the module that is called taken or made anew in each iteration?"""
    if call.module is not None and loop in call.module.loops:
        return True
    node = loop.node
    root = call.callee.partition(".")[0].partition("[")[0]
    return isinstance(node, cst.For) and root in _names(node.target)


def _names(target: cst.BaseExpression) -> set[str]:
    if isinstance(target, cst.Tuple | cst.List):
        return set().union(*(_names(element.value) for element in target.elements))
    return {dotted_text(target)}
