"""Creating: tensors that are made on the host only to be moved at once: `torch.zeros(n).to(device)`.

What is made, how large it is and where it goes shows in the definitions and uses of one function; no run is needed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from torchmemlint.amounts import FLOAT
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact import roles
from torchmemlint.flow.fact.devices import is_accelerator, is_device
from torchmemlint.flow.fact.numbers import argument
from torchmemlint.flow.fact.sizes import Sizes
from torchmemlint.flow.ir.blocks import layout_of, operations
from torchmemlint.flow.ir.control import For, If, While
from torchmemlint.flow.ir.defuse import definitions
from torchmemlint.flow.ir.ops import (
    Call,
    CallMethod,
    Choose,
    Compare,
    Constant,
    Function,
    GetAttribute,
    Make,
    Op,
    Operate,
    Unit,
)
from torchmemlint.flow.ir.places import NO_TEMP, Argument, Spread, Temp
from torchmemlint.immutable import immutable
from torchmemlint.knowledge import operations as known
from torchmemlint.knowledge import torch_api

_SMALL = 1024  # numbers; less costs next to nothing
_RANDOM = frozenset({"rand", "randn", "randint", "randperm"})
ALIKE = frozenset({"zeros", "ones", "empty", "full", "eye"})  # the same to the bit wherever they are made
_RANGES = frozenset({"arange", "range"})
WHOLE = frozenset({"arange", "randint", "randperm"})  # of int64, where they are told nothing else
_WAITING = frozenset({"non_blocking", "async"})
_DEFAULT_DEVICE = ("set_default_device", "set_default_tensor_type", "with torch.device(")
_WITH_OTHER_MEANING = frozenset({"out", "pin_memory", "names", "layout", "requires_grad"})
_COUNTING = frozenset({"range", "trange", "count"})
_PARAMETER = frozenset({"torch.nn.Parameter", "torch.nn.parameter.Parameter"})
_DATA_SETS = frozenset({"Dataset", "IterableDataset"})
# What fills a tensor that is just made: with one number, or by drawing them.
_FILLING = frozenset({"fill_", "zero_"})
_DRAWING = frozenset("bernoulli_ cauchy_ exponential_ geometric_ log_normal_ normal_ random_ uniform_".split())


@immutable()
class Extent:
    """How much a call of a factory makes."""

    nbytes: int | None
    repeated: bool  # is it made again and again?
    grows: bool  # with the data?


@immutable()
class Creation:
    """A tensor that is created on the host and moved."""

    moved: Op
    created: Op
    exact: bool  # do the same numbers come out on a device?
    same_place: bool  # does `device=` put it there as well? `.cuda(None)` is a GPU, `device=None` is not
    extent: Extent


def creations(engine: Engine, unit: Unit, text: str) -> Iterator[Creation]:
    """Yield what a file creates in the wrong place; `text` is the file's."""
    if any(word in text for word in _DEFAULT_DEVICE):
        return
    making = known.factories() | torch_api.CONSTRUCTORS.keys()
    for function in unit.functions:
        if not function.mentions.isdisjoint(torch_api.MOVES) and not function.mentions.isdisjoint(making):
            yield from _Moved(engine, function).creations()


class Factories:
    """The factories that one function calls, with what its operations tell of them."""

    def __init__(self, engine: Engine, function: Function) -> None:
        self._engine, self._function = engine, function
        self.flow, self._layout = definitions(function), layout_of(function)
        self._sizes = Sizes(function, self.flow, engine.imported([function.unit]))

    def factory(self, op: Op | None, *more: str) -> str:
        """Return the name of the factory of torch that a call is of; "" for others.

        It is none that is given something of another meaning than its numbers have, or one of these arguments.
        """
        owner, _, name = self.flow.called(op).rpartition(".")
        if not isinstance(op, Call | CallMethod) or owner != "torch" or name not in known.factories():
            return ""
        names = {one.name for one in op.arguments}
        starred = any(one.spread in (Spread.STAR, Spread.STARS) for one in op.arguments)
        return "" if starred or not names.isdisjoint(_WITH_OTHER_MEANING.union(more)) else name

    def extent(self, copied: Op, factory: str, created: Op) -> Extent | None:
        """Return how much a factory makes that is copied at once; None where that hardly matters."""
        shape = _shape(factory, created)
        numbers = self._numbers(factory, created, shape)
        if (numbers is not None and numbers < _SMALL) or self._is_one_per_item(factory, shape):
            return None
        if self._is_self_check(copied):
            return None
        nbytes = numbers * self._width(factory, created) if numbers is not None else None
        grows = self._function.parent is not None and self._sizes.axes_of_data(shape) > 1  # a script makes it once
        return Extent(nbytes, self._is_repeated(copied, factory), grows)

    def is_fractional(self, created: Call | CallMethod) -> bool:
        """Is a factory given a number with a fraction?"""
        constants = (self.flow.made.get(one.temp) for one in created.arguments)
        return any(isinstance(one, Constant) and isinstance(one.value, float) for one in constants)

    def _is_self_check(self, op: Op) -> bool:
        """Does a module of layers try itself out there, once, where it is run as a program?"""
        if self._function.parent is not None:
            return False
        around = [one for one, _ in self._layout.above(op)]
        if not around or not isinstance(around[-1], If) or not self._is_program(around[-1].test):
            return False
        if any(isinstance(one, For | While) for one in operations([around[-1]])):
            return False
        return any(map(self._engine.index.is_network, self._function.unit.classes))

    def _is_program(self, test: Temp) -> bool:
        made = self.flow.made.get(test)
        return isinstance(made, Compare) and any(self.flow.path(one) == "__name__" for one in made.operands)

    # How often.

    def _is_repeated(self, op: Op, factory: str) -> bool:
        """Is it made again and again? A loop in a constructor makes the parts of one object."""
        function = self._function.definition
        if function.name == "__init__":
            return False
        loops = list(self._layout.loops(op))
        if function.parent is None and factory in _RANDOM and all(map(self._counts, loops)):
            return False  # a script that makes its data up, step for step, tries something out
        for one, block in self._layout.above(op):
            if isinstance(one, For | While):
                break
            if isinstance(one, If) and block is one.then and self._is_seldom(one.test):
                return False
        return bool(loops) or function is not self._function or roles.is_called_for_batches(self._engine, function)

    def _is_seldom(self, test: Temp) -> bool:
        """`step % 100 == 0`, `not step % 100`, also beside other conditions."""
        match self.flow.made.get(test):
            case Choose(operands=operands):
                return any(map(self._is_seldom, operands))
            case Compare(operator="==" | "not", operands=[first, *_]):
                made = self.flow.made.get(first)
                return isinstance(made, Operate) and made.operator == "%"
        return False

    def _counts(self, loop: Op) -> bool:
        """`for i in range(n)`, or over what is written down in place."""
        if not isinstance(loop, For):
            return False
        made = self.flow.made.get(loop.source)
        if isinstance(made, Make):
            return True
        given = [self.flow.made.get(one.temp) for one in made.arguments] if isinstance(made, Call) else []
        inner = (self._name(one) for one in given if isinstance(one, Call))
        return self._name(made) in _COUNTING or any(name in _COUNTING for name in inner)

    def _name(self, op: Op | None) -> str:
        """Return the last name of what a call is of."""
        if isinstance(op, Call):
            return self.flow.path(op.callee).rpartition(".")[2]
        return op.name if isinstance(op, CallMethod) else ""

    # How much.

    def _numbers(self, factory: str, created: Op, shape: list[Temp]) -> int | None:
        """Return how many numbers the tensor holds; None where that is not known."""
        at_most = self._sizes.at_most
        if factory in _RANGES:
            ends = [at_most(temp) for temp in shape]
            return max((abs(end) for end in ends if end is not None), default=None) if None not in ends else None
        if factory == "eye":
            rows, columns = argument(created, 0, "n"), argument(created, 1, "m")
            shape = [rows, rows if columns == NO_TEMP else columns]
        sizes = list(self._written_out(shape))
        counts = [at_most(size) for size in sizes]
        known_counts = [count for count in counts if count is not None]
        if 0 in known_counts:
            return 0
        return math.prod(known_counts) if len(known_counts) == len(counts) else None

    def _width(self, factory: str, created: Op) -> int:
        """Return the bytes of one of its numbers."""
        given = argument(created, -1, "dtype")
        known_width = torch_api.WIDTHS.get(self.flow.name(given)) if given != NO_TEMP else None
        return known_width or (2 * FLOAT if factory in WHOLE else FLOAT)

    def _written_out(self, shape: Iterable[Temp]) -> Iterator[Temp]:
        """Yield the sizes of a shape, those in a tuple each by itself."""
        for temp in shape:
            made = self.flow.made.get(temp)
            if isinstance(made, Make) and all(entry.spread is Spread.PLAIN for entry in made.entries):
                yield from (entry.temp for entry in made.entries)
            else:
                yield temp

    def _is_one_per_item(self, factory: str, shape: list[Temp]) -> bool:
        """Has it a single axis, as long as a batch?"""
        sizes = list(self._written_out(shape))
        return factory != "eye" and len(sizes) == 1 and self._sizes.is_one_per_item(sizes[0])


class _Moved(Factories):
    """Those whose tensors go to a device at once."""

    def creations(self) -> Iterator[Creation]:
        for op in operations(self._function.body):
            if isinstance(op, CallMethod) and op.name in torch_api.MOVES and (found := self._creation(op)) is not None:
                yield found

    def _creation(self, op: CallMethod) -> Creation | None:
        created, drawn = self._before_filling(op.base)
        if not isinstance(created, Call | CallMethod):
            return None
        filled = created is not self.flow.made.get(op.base)
        factory = "empty" if self._constructor(created, filled) else self.factory(created, "device")
        given = [one for one in op.arguments if one.name not in _WAITING]
        if not factory or not self._is_moved(op, given) or self._is_beside_samples(given):
            return None
        extent = self.extent(op, factory, created)
        if extent is None:
            return None
        if factory in _RANDOM and any(self.flow.called(one) in _PARAMETER for one in self.flow.following(op)):
            return None  # a start that is the same with and without a GPU
        return Creation(
            op,
            created,
            not drawn and (factory in ALIKE or (factory == "arange" and not self.is_fractional(created))),
            op.name != "cuda" or not given or is_accelerator(self.flow, given[0].temp),
            extent,
        )

    def _before_filling(self, temp: Temp) -> tuple[Op | None, bool]:
        """Return what makes a tensor that is filled in the same expression, and whether its numbers are drawn."""
        drawn, made = False, self.flow.made.get(temp)
        while isinstance(made, CallMethod) and made.name in _FILLING | _DRAWING:
            drawn = drawn or made.name in _DRAWING
            made = self.flow.made.get(made.base)
        return made, drawn

    def _constructor(self, created: Call | CallMethod, filled: bool) -> str:
        """Return the name of a constructor of old that is given sizes, `FloatTensor(n, m)`; "" for others.

        A single argument may be numbers as well, as the shape of what is no tensor of torch's is.
        """
        owner, _, name = self.flow.called(created).rpartition(".")
        sized = all(one.spread is Spread.PLAIN for one in created.arguments) and (
            len(created.arguments) > 1 or self._is_size(created.arguments, filled)
        )
        return name if owner == "torch" and name in torch_api.CONSTRUCTORS and sized else ""

    def _is_size(self, given: tuple[Argument, ...], filled: bool) -> bool:
        """Is a single argument a size for certain: a number, a length, or a shape whose numbers are written over?"""
        made = self.flow.made.get(given[0].temp) if given else None
        if isinstance(made, GetAttribute):
            return filled and made.name == "shape"
        if isinstance(made, Call | CallMethod):
            return self._name(made) in ("len", "size")
        return given != () and self._sizes.at_most(given[0].temp) is not None

    # Where it goes.

    def _is_moved(self, op: CallMethod, given: list[Argument]) -> bool:
        """Is it brought to a device, and nothing else?"""
        if not given:
            return op.name == "cuda"
        if len(given) > 1 or given[0].spread not in (Spread.PLAIN, Spread.NAMED) or given[0].name not in ("", "device"):
            return False
        made = self.flow.made.get(given[0].temp)
        if isinstance(made, Constant) and isinstance(made.value, str):
            return is_accelerator(self.flow, given[0].temp)
        return op.name == "cuda" or is_device(self.flow, given[0].temp)

    def _is_beside_samples(self, given: list[Argument]) -> bool:
        """In a data set, `x.device` is where the samples lie: the host, as a rule."""
        cls, path = self._function.cls, self.flow.path(given[0].temp) if given else ""
        if cls is None or not path.endswith(".device") or path.startswith("self."):
            return False
        return any(base.rpartition(".")[2] in _DATA_SETS for base in self._engine.index.libraries(cls))


def _shape(factory: str, created: Op) -> list[Temp]:
    """Return the arguments that say how large the tensor is: its axes, or all of them in one."""
    size = argument(created, -1, "size")
    if size != NO_TEMP:
        return [size]
    plain = [one.temp for one in getattr(created, "arguments", ()) if one.spread is Spread.PLAIN]
    return plain[-1:] if factory == "randint" else plain[:1] if factory == "full" else plain
