"""Relevance: which functions are worth an entry of their own.

What a run can show rests on something that shows in the text: a backward, what is read off or detached, an evaluation
mode, a hook, a cache, a framework that differentiates what it returns, or a name that says that it infers or evaluates.
A function without any such thing, that calls nothing of its file with it either, and nothing of others in which it
stands, only builds and computes.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from functools import lru_cache, partial

from torchmemlint.flow.domain.refs import ClassRef
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact import roles
from torchmemlint.flow.fact.clauses import speaks_of_memory
from torchmemlint.flow.fact.samples import is_sampling, may_memoise
from torchmemlint.flow.ir.blocks import fills, operations
from torchmemlint.flow.ir.defuse import definitions
from torchmemlint.flow.ir.ops import CallMethod, Function, Unit
from torchmemlint.knowledge import checkpoints, services, torch_api
from torchmemlint.knowledge.contracts import Contracts

_READ = torch_api.READERS | torch_api.CUTS | {"argmax", "cpu", "data", "float", "format", "print"}
_WHOLE = (torch_api.DISCRETE_TYPES | {"argmin", "argsort", "multinomial"}) - {"bool", "int"}  # which Python has, too
_KEPT = frozenset({"append", "appendleft", "extend", "insert", "put", "setdefault", "add", "lru_cache", "cache"})
_RUN = frozenset({"backward", "eval", "grad", "jacobian", "requires_grad", "requires_grad_", "train", "zero_grad"})
_COMMON = (_KEPT - {"cache", "lru_cache"}) | _WHOLE
_COMMON |= {"cpu", "data", "float", "format", "print", "requires_grad", "train"}
_OF_NETWORKS = _RUN | {"Parameter", "autograd", "forward", "named_parameters", "parameters", "state_dict"}
_SWITCHES = frozenset({"eval", "requires_grad_", "train"})
_OLD = frozenset({"volatile"})
_MEASURED = frozenset({"compute_metrics"})  # of what a trainer collects
_FAILING = frozenset({"OutOfMemoryError", "empty_cache"})
HOOKED = frozenset(f"register_{kind}" for kind in ("hook", "forward_hook", "forward_pre_hook", "full_backward_hook"))


class Relevance:
    """Which functions of some files are worth an entry."""

    def __init__(self, engine: Engine, files: Iterable[Unit]) -> None:
        self._engine = engine
        self._elsewhere = set().union(*(_telling(engine.index.contracts, unit) for unit in engine.imported(files)))
        self._of: dict[Unit, Set[Function]] = {}
        within = engine.imported(files)
        memoises = any(is_sampling(f) and may_memoise(f) for unit in within for f in unit.functions)
        self._loaders = engine.index.contracts.names("loaders").last_parts if memoises else frozenset[str]()

    def has_any(self, unit: Unit) -> bool:
        """Is a file worth running? The body of a library's is not, by itself."""
        return not self._engine.index.sources.is_library(unit.name) or any(map(self.has, unit.functions))

    def has(self, function: Function) -> bool:
        """Is a function worth an entry?"""
        unit = function.unit
        if unit not in self._of:
            is_library = self._engine.index.sources.is_library(unit.name)
            self._of[unit] = self._found_in_library(unit) if is_library else self._found(unit)
        return function in self._of[unit]

    def _found(self, unit: Unit) -> set[Function]:
        """The functions of a file that tell something, or call others that do."""
        found = self._leading_to(unit, _words(self._engine.index.contracts))
        return found | {f for f in unit.functions if not f.mentions.isdisjoint(self._elsewhere)}

    def _found_in_library(self, unit: Unit) -> set[Function]:
        """The functions of a library's file that have to do with networks, and do more than to build and to compute.

        Lists that they fill are their own, but for those that are attributes.
        """
        found = self._leading_to(unit, _words(self._engine.index.contracts) - _COMMON)
        return {function for function in found if self._may_run_networks(function)}

    def _leading_to(self, unit: Unit, words: Set[str]) -> set[Function]:
        """The functions of a file that mention a word, tell something, or call others that do."""
        found: set[Function] = set()
        names = words | _switched(unit)
        loaders = self._engine.index.contracts.names("loaders").last_parts
        fresh = [f for f in unit.functions if not f.mentions.isdisjoint(names) or self._tells(f)]
        while fresh:
            found.update(fresh)
            names |= {f.name for f in fresh if not f.name.startswith("__")}
            names |= {f.cls.name for f in fresh if f.cls is not None and not f.mentions.isdisjoint(loaders)}
            fresh = [f for f in unit.functions if f not in found and not f.mentions.isdisjoint(names)]
        return found

    def _may_run_networks(self, function: Function) -> bool:
        """Does a function of a library belong to a network, or show that it has to do with one?"""
        index, cls = self._engine.index, function.cls
        around = [function] if cls is None else list(cls.methods.values())
        if self._has_role(function) or any(not f.mentions.isdisjoint(_OF_NETWORKS) for f in around):
            return True
        if any(map(partial(self._is_network, function.unit), function.mentions)):
            return True
        return cls is not None and (index.may_be_network(cls) or index.is_pipeline(cls))

    def _is_network(self, unit: Unit, name: str) -> bool:
        """Does a name of a file stand for a class of networks?"""
        if name not in unit.once and name not in unit.imports:
            return False
        found = self._engine.index.in_unit(unit, name)
        return any(type(r) is ClassRef and self._engine.index.is_network(r.cls) for r in found.refs) if found else False

    def _tells(self, function: Function) -> bool:
        """Does something show of a function by what it fills, its role, or what it does without memory?"""
        if not function.mentions.isdisjoint(self._loaders) or function.mentions >= checkpoints.READING:
            return True
        return fills(function.body) or self._has_role(function) or speaks_of_memory(function)

    def _has_role(self, function: Function) -> bool:
        return roles.is_for_users(self._engine, function) or roles.is_step(self._engine, function)


@lru_cache(maxsize=4)
def _words(contracts: Contracts) -> frozenset[str]:
    names = contracts.names
    shown = names("differentiates").shown_by | names("runs-without-gradients").methods
    modes = contracts.off.last_parts | contracts.on.last_parts | services.WORDS | checkpoints.WORDS
    loaders = names("loaders").last_parts
    return _READ | _WHOLE | _KEPT | _RUN | HOOKED | _OLD | _MEASURED | _FAILING | loaders | shown | modes


def _telling(contracts: Contracts, unit: Unit) -> set[str]:
    """The names of a file's functions in which something shows, and of what its body switches to a mode."""
    words = _words(contracts)
    told = {f.name for f in unit.functions[1:] if not f.name.startswith("__") and not f.mentions.isdisjoint(words)}
    return told | _switched(unit)


@lru_cache(maxsize=256)
def _switched(unit: Unit) -> frozenset[str]:
    """The variables that a file's body switches to a mode (`net = build().eval()`, `net.eval()`): others run them."""
    body = unit.module
    if body.mentions.isdisjoint(_SWITCHES):
        return frozenset()
    use = definitions(body)
    switching = {op for op in operations(body.body) if isinstance(op, CallMethod) and op.name in _SWITCHES}
    found = {use.path(op.base).partition(".")[0] for op in switching}
    bound = (name for name, temps in use.bound.items() if not switching.isdisjoint(use.behind(*temps)))
    return frozenset({*found, *bound} - {""})
