"""Files by what a program calls them: one that it saves and reads again lies on its own devices."""

from __future__ import annotations

from torchmemlint.flow.fact.numbers import actual
from torchmemlint.flow.ir.defuse import definitions
from torchmemlint.flow.ir.ops import Call, Function, Load, Op, Unit
from torchmemlint.flow.ir.places import NO_TEMP, Scope, Temp

_RANKS = frozenset({"DistributedDataParallel", "local_rank", "LOCAL_RANK"})


def path_given(op: Op, position: int) -> Temp | None:
    """Return the path that a call which reads or saves is given: by name, or at a position."""
    given = [a for a in getattr(op, "arguments", ()) if a.name in ("", "f", "url")]
    plain = [a for a in given if a.name] or given[position:]
    return plain[0].temp if plain else None


def file_in_program(chain: list[Op], position: int) -> object:
    """Return which file is read or saved, as the program calls it: equal for two calls that mean the same one.

    `chain` are the calls that lead there, innermost first. A path that a function is given is followed to who gives
    it. Two that one function of the file makes are taken for the same. None where only this call knows it.
    """
    temp = path_given(chain[0], position)
    for op, caller in zip(chain, [*chain[1:], None], strict=True):
        if temp is None:
            return None
        given = None if caller is None else _given(op.owner, temp, caller)
        if given is None:
            return _in_file(op.owner, temp)
        temp = given
    return None


def _given(function: Function, temp: Temp, caller: Op) -> Temp | None:
    """Return what a caller gives for a path that is a parameter; None where it is none, or has another value by now."""
    known = definitions(function)
    op = known.made.get(temp)
    if not isinstance(op, Load) or op.name.scope is Scope.GLOBAL or op.name.text in known.bound:
        return None
    temp = actual(caller, function, op.name.text)
    return None if temp == NO_TEMP else temp


def _in_file(function: Function, temp: Temp) -> object:
    """Return a path that is made of what the whole file knows; None for others."""
    known, unit = definitions(function), function.unit
    match known.made.get(temp):
        case Call(callee=callee) if known.name(callee) in unit.once:
            return unit, known.name(callee)
    names = [op.name for op in known.behind(temp) if isinstance(op, Load)]
    if not names or not all(name.scope in (Scope.GLOBAL, Scope.BUILTIN) or function is unit.module for name in names):
        return None
    return unit, known.written(temp)


def is_for_ranks(unit: Unit) -> bool:
    """Is a file for several processes? Each of them would read what one has saved."""
    if any(name.startswith("torch.distributed") for name in unit.imports.values()):
        return True
    return any(not _RANKS.isdisjoint(function.mentions) for function in unit.functions)
