"""Refilling: loops that write the entries of a list by number, and read none that an earlier pass left there.

What a list keeps is known as a whole, and not which entry is the one of before. Here the numbers tell: entry `n` is
computed of entry `n - 1`, which the loop has written just before, and the first of which no pass writes.
"""

from __future__ import annotations

from torchmemlint.flow.ir import ops
from torchmemlint.flow.ir.blocks import layout_of, operations
from torchmemlint.flow.ir.control import For
from torchmemlint.flow.ir.defuse import DefUse, definitions, operands
from torchmemlint.flow.ir.places import ComputedKey, Temp


def is_refilled(site: object) -> bool:
    """Does `xs[n] = ...` stand in a loop over `n` after which no entry is read that was there before the loop?"""
    if not isinstance(site, ops.SetItem) or not isinstance(site.key, ComputedKey):
        return False
    flow, layout = definitions(site.owner), layout_of(site.owner)
    written, variable = flow.path(site.base), _name(flow, site.key.temp)
    loop = next((one for one in layout.loops(site) if isinstance(one, For)), None)
    if not written or not variable or loop is None or flow.bound.get(variable) != [loop.item]:
        return False
    first, inside = _first(flow, loop), set(operations(loop.body))
    for op in flow.taken:
        for taking in flow.taken[op] if flow.path(op) == written else ():
            if isinstance(taking, ops.SetItem) and taking.base == op and taking.src != op:
                continue
            if taking not in inside:
                if layout.order[taking] < layout.order[loop]:
                    return False  # it takes up what is there before
            elif not isinstance(taking, ops.GetItem) or not isinstance(taking.key, ComputedKey):
                return False
            elif _name(flow, taking.key.temp) == variable:
                if layout.order[taking] < layout.order[site] or id(layout.home(site)) not in layout.around(taking):
                    return False
            elif not 0 < _back(flow, taking.key.temp, variable) <= first:
                return False
    return True


def _name(flow: DefUse, temp: Temp) -> str:
    """Return the local name that is loaded; "" for anything else."""
    op = flow.made.get(temp)
    return op.name.text if isinstance(op, ops.Load) else ""


def _first(flow: DefUse, loop: For) -> int:
    """Return the first number of `for n in range(first, ...)`; 0 where it is not written down."""
    call = flow.made.get(loop.source)
    if isinstance(call, ops.Call) and flow.name(call.callee) == "range" and len(call.arguments) == 2:
        number = _number(flow, call.arguments[0].temp)
        return max(number, 0)
    return 0


def _back(flow: DefUse, temp: Temp, variable: str) -> int:
    """Return the 1 of `n - 1`; 0 for other expressions."""
    op = flow.made.get(temp)
    if isinstance(op, ops.Operate) and op.operator == "-" and len(given := list(operands(op))) == 2:
        return _number(flow, given[1]) if _name(flow, given[0]) == variable else 0
    return 0


def _number(flow: DefUse, temp: Temp) -> int:
    op = flow.made.get(temp)
    return op.value if isinstance(op, ops.Constant) and type(op.value) is int else 0
