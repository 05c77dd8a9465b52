"""Loops over batches that compute on a device: by what moves the batches there, or by what prepares their loader."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchmemlint.flow.interpreter import Interpreter
from torchmemlint.flow.values import Container, Device, External, Flag, Known, LoopMark, Unknown, Value
from torchmemlint.syntax.walking import contains

if TYPE_CHECKING:
    from torchmemlint.flow.arguments import Arguments

PREPARED = "prepared"  # flag of a loader whose batches come on the device


def prepared(it: Interpreter, node: cst.Call, value: Value) -> None:
    """A framework takes over a loader: its batches come on the device."""
    if isinstance(value, Known) and value.role == "loader" and value.oid:
        it.state.heap[(value.oid, PREPARED)] = Flag(True, it.site(node))


def entered(it: Interpreter, element: Value) -> None:
    """A loop gives `element` in each iteration."""
    flag = it.state.heap.get((batch.oid, PREPARED)) if (batch := _batch(element)) is not None else None
    if isinstance(flag, Flag) and flag.site is not None:
        it.facts.on_device.setdefault(it.frame.loops[-1], flag.site)


def _batch(element: Value) -> Known | None:
    match element:
        case Known(role="batch"):
            return element
        case Container(items=items) if items:
            return next((found for item in items if (found := _batch(item)) is not None), None)
    return None


def moved(it: Interpreter, node: cst.Call, owner: Value, arguments: Arguments, device: Device) -> None:
    """`x.to(device)`: where x is (a part of) a loop's batch, the loop computes on that device."""
    if device is Device.HOST or not (it.recording or it.frame.path) or _is_dtype(arguments):
        return
    for mark in reversed(it.frame.loops):
        if isinstance(mark.node, cst.For) and _gives(it, mark, mark.node, owner):
            it.facts.on_device.setdefault(mark, it.site(node))
            return


def _is_dtype(arguments: Arguments) -> bool:
    given = arguments.find("0", "dtype", "device")
    if given is None:
        return False
    is_torch = isinstance(given.value, External) and given.value.qualified.startswith("torch.")
    return (
        is_torch
        or given.name == "dtype"
        or (isinstance(given.node, cst.Attribute) and given.node.attr.value == "dtype")
    )


def _gives(it: Interpreter, mark: LoopMark, loop: cst.For, owner: Value) -> bool:
    match owner:
        case Known(role="batch"):
            known = it.facts.micro_batches.get(mark)
            return known is not None and known.passes
        case Unknown(made=made) if made is not None:
            return contains(loop.iter, made.site.node)
    return False
