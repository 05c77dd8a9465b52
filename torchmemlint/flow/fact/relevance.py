"""Relevance: which functions are worth an entry of their own.

What a run can show rests on something that shows in the text: a backward, what is read off or detached, an evaluation
mode, a hook, a cache, a framework that differentiates what it returns, or a name that says that it infers or evaluates.
A function without any such thing, that calls nothing of its file with it either, and nothing of others in which it
stands, only builds and computes.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from functools import lru_cache

from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact import roles
from torchmemlint.flow.ir.ops import AttributePlace, Function, Op, SetItem, Unit
from torchmemlint.knowledge import torch_api
from torchmemlint.knowledge.contracts import Contracts

_READ = torch_api.READERS | torch_api.CUTS | {"argmax", "cpu", "data", "float", "format", "print"}
_KEPT = frozenset({"append", "appendleft", "extend", "insert", "put", "setdefault", "add", "lru_cache", "cache"})
_RUN = frozenset({"backward", "eval", "grad", "jacobian", "requires_grad", "requires_grad_", "train", "zero_grad"})
_HOOKED = frozenset(f"register_{kind}" for kind in ("hook", "forward_hook", "forward_pre_hook", "full_backward_hook"))


class Relevance:
    """Which functions of some files are worth an entry."""

    def __init__(self, engine: Engine, files: Iterable[Unit]) -> None:
        self._engine = engine
        self._elsewhere = set().union(*(_telling(engine.index.contracts, unit) for unit in engine.imported(files)))
        self._of: dict[Unit, Set[Function]] = {}

    def has(self, function: Function) -> bool:
        """Is a function worth an entry?"""
        unit = function.unit
        if unit not in self._of:
            self._of[unit] = self._found(unit)
        return function in self._of[unit]

    def _found(self, unit: Unit) -> set[Function]:
        """The functions of a file that tell something, or call others that do."""
        found: set[Function] = set()
        names = set(_words(self._engine.index.contracts))
        fresh = [f for f in unit.functions if not f.mentions.isdisjoint(names) or self._tells(f)]
        while fresh:
            found.update(fresh)
            names |= {f.name for f in fresh if not f.name.startswith("__")}
            fresh = [f for f in unit.functions if f not in found and not f.mentions.isdisjoint(names)]
        return found | {f for f in unit.functions if not f.mentions.isdisjoint(self._elsewhere)}

    def _tells(self, function: Function) -> bool:
        """Does something show of a function by what it fills, or by what it is for?"""
        engine = self._engine
        return _fills(function.body) or roles.is_for_users(engine, function) or roles.is_step(engine, function)


def _fills(body: Iterable[Op]) -> bool:
    """Is something put under a key of an attribute: of a table, or of a tensor that is filled?"""
    return any(
        (type(op) is SetItem and type(op.place) is AttributePlace)
        or any(_fills(getattr(op, block, ())) for block in ("body", "orelse", "then", "final"))
        for op in body
    )


@lru_cache(maxsize=4)
def _words(contracts: Contracts) -> frozenset[str]:
    names = contracts.names
    shown = names("differentiates").shown_by | names("runs-without-gradients").methods
    return _READ | _KEPT | _RUN | _HOOKED | shown


def _telling(contracts: Contracts, unit: Unit) -> set[str]:
    """The names of a file's functions in which something shows."""
    words = _words(contracts)
    return {f.name for f in unit.functions[1:] if not f.name.startswith("__") and not f.mentions.isdisjoint(words)}
