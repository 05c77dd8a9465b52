"""Rows: is a network given one row of numbers, as the state of an environment is?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchmemlint.flow.fact.numbers import actual
from torchmemlint.flow.ir.defuse import definitions
from torchmemlint.flow.ir.ops import Call, CallMethod, Constant, GetItem, Load, Make, Op, Unpack
from torchmemlint.flow.ir.places import NO_TEMP, ComputedKey, ConstantKey, SliceKey, Spread, Temp

_DEPTH = 8
# What makes a tensor of numbers on the host, and what gives what it is given with all its rows.
TENSORS = frozenset(f"torch.{name}" for name in "DoubleTensor FloatTensor Tensor as_tensor from_numpy tensor".split())
WRAPPING = frozenset({"torch.autograd.Variable", "numpy.array", "numpy.asarray", "numpy.float32"})
CONVERTING = frozenset("contiguous cpu cuda double float long to type".split())
_FROM_HOST = TENSORS | {"torch.cuda.FloatTensor"}
_KEEPING = CONVERTING | {"astype"}
_STEPS = range(3, 6)  # results of an environment's step: four, five since gymnasium, three of a wrapper


def given_one_row(chains: Iterable[list[Op]]) -> Iterator[Op]:
    """Yield the calls that are given one row of numbers, of calls with those that led there, innermost first."""
    for chain in chains:
        call = chain[0] if chain else None
        if isinstance(call, Call | CallMethod) and _Calling(chain).gives_one():
            yield call


class _Calling:
    """A call in its function, with the calls that led there."""

    def __init__(self, chain: list[Op]) -> None:
        self._call, *self._outer = chain
        self._flow = definitions(self._call.owner)
        self._made = self._flow.made

    def gives_one(self) -> bool:
        """Are all tensors that are given one row each?"""
        arguments = self._call.arguments if isinstance(self._call, Call | CallMethod) else ()
        given = [a.temp for a in arguments if not isinstance(self._made.get(a.temp), Constant)]
        return bool(given) and all(self._is_one(temp, _DEPTH) for temp in given)

    def _is_one(self, temp: Temp, depth: int) -> bool:
        if depth == 0:
            return False
        match self._made.get(temp):
            case Load(name=name) as load:
                read = self._read(load)
                if read is not None and read[0]._is_one(read[1], depth - 1):
                    return True
                return self._is_state(name.text)
            case CallMethod(name="reshape" | "view", arguments=[first, _]):
                return self._is(first.temp, 1)
            case CallMethod(base=base, name="unsqueeze", arguments=[first]) if self._is(first.temp, 0):
                return self._is_of_host(base, depth - 1)
            case CallMethod(arguments=[given, axis]) as call if self._flow.called(call) == "torch.unsqueeze":
                return self._is(axis.temp, 0) and self._is_of_host(given.temp, depth - 1)
            case GetItem(base=base, key=ConstantKey(value=None)):
                return self._is_of_host(base, depth - 1)
            case GetItem(base=base, key=ComputedKey(temp=key) | SliceKey(parts=[key, *_])) if self._is_axis(key):
                return self._is_array(base) or self._is_of_host(base, depth - 1)
        whole = self._before_a_move(temp)
        if whole is not None:
            return self._is_one(whole, depth - 1)
        function, first_given = self._function_of(temp)
        if function not in _FROM_HOST | WRAPPING:
            return function == "numpy.expand_dims"
        match self._made.get(first_given):
            case Make(kind="list", entries=[entry]):
                return entry.spread is Spread.PLAIN
        return self._is_one(first_given, depth - 1)

    def _is_of_host(self, temp: Temp, depth: int) -> bool:
        """Was it made of numbers on the host, as a state is, and not computed?"""
        if depth == 0:
            return False
        made = self._made.get(temp)
        if isinstance(made, Load):
            read = self._read(made)
            return read[0]._is_of_host(read[1], depth - 1) if read is not None else self._is_state(made.name.text)
        whole = self._before_a_move(temp)
        if whole is not None:
            return self._is_of_host(whole, depth - 1)
        function, first_given = self._function_of(temp)
        return function in _FROM_HOST or (function in WRAPPING and self._is_of_host(first_given, depth - 1))

    def _is(self, temp: Temp, value: int | None) -> bool:
        made = self._made.get(temp)
        return isinstance(made, Constant) and made.value == value

    def _is_axis(self, temp: Temp) -> bool:
        """`None` or `numpy.newaxis`, in an index."""
        return self._is(temp, None) or self._flow.name(temp) == "numpy.newaxis"

    def _is_array(self, temp: Temp) -> bool:
        """Is it an array of numpy's, as only these are given such an axis by name? Not if it was loaded in rows."""
        return isinstance(self._made.get(temp), Load)

    def _before_a_move(self, temp: Temp) -> Temp | None:
        """Return what a tensor was before `.to(device)`, `.float()` and the like."""
        match self._made.get(temp):
            case CallMethod(base=base, name=name) if name in _KEEPING:
                return base
        return None

    def _function_of(self, temp: Temp) -> tuple[str, Temp]:
        """Return the name of the function that makes it of something, and of what."""
        match self._made.get(temp):
            case (Call(arguments=[first, *_]) | CallMethod(arguments=[first, *_])) as made:
                return self._flow.called(made), first.temp
        return "", temp

    def _is_state(self, name: str, seen: frozenset[str] = frozenset()) -> bool:
        """Is all that a variable holds what `reset()` or `step(action)` of an environment gives?"""
        steps, copies = False, list[str]()
        for one in self._flow.binds.get(name, ()):
            made, several = self._unpacked(one.src)
            match made:
                case CallMethod(name="step") if several in _STEPS:
                    steps = True
                case CallMethod(name="reset"):
                    pass
                case Load(name=copied):
                    copies.append(copied.text)
                case _:
                    return False
        further = [self._is_state(copy, seen | {name}) for copy in copies if copy not in seen]
        return all(further) and (steps or any(further))

    def _unpacked(self, temp: Temp) -> tuple[Op | None, int]:
        """Return what makes a value, or the several values that it is one of, and how many these are."""
        made = self._made.get(temp)
        if not isinstance(made, Unpack):
            return made, 1
        whole = self._made.get(made.src)
        if isinstance(whole, Make) and len(whole.entries) == len(made.targets):
            return self._made.get(whole.entries[made.targets.index(temp)].temp), 1
        return whole, len(made.targets)

    def _read(self, load: Load) -> tuple[_Calling, Temp] | None:
        """Return what a variable was given last: here, or by the caller; None where that is not known."""
        last = self._flow.last(load)
        if last is not None:
            return self, last.src
        given = actual(self._outer[0], self._call.owner, load.name.text) if self._outer else NO_TEMP
        return None if given == NO_TEMP else (_Calling(self._outer), given)
