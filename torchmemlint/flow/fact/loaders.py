"""Loaders: what they are made with, as far as a run knows it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.refs import Behind, Kind, Object, root
from torchmemlint.flow.domain.values import Value
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact.logs import Run
from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.ir.defuse import DefUse
from torchmemlint.flow.ir.ops import CallMethod, Constant, Op, Spread

# Source: torch 2.13, utils/data/dataloader.py: DataLoader.__init__.
_POSITIONAL = ("dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers", "collate_fn")
_WITHOUT_REPLACEMENT = ("DistributedSampler", "SequentialSampler", "SubsetRandomSampler")


@dataclass(frozen=True, slots=True)
class Loader:
    """The call that makes a loader, in one run."""

    run: Run
    made: fx.Serve

    def given(self, name: str) -> Value | None:
        """Return an argument; None where it is not given, or None itself."""
        found = self.made.arguments.get(_POSITIONAL.index(name) if name in _POSITIONAL else 99, name)
        return None if found is None or (found.known and found.constant is None) else found

    @property
    def is_open(self) -> bool:
        """May it be given more than is seen?"""
        return self.made.arguments.star is not None or self.made.arguments.stars is not None

    @property
    def workers(self) -> int | None:
        """How many worker processes it has, by default if that is an option of the program; None if not known."""
        value = self.given("num_workers")
        if value is None:
            return None if self.is_open else 0
        if value.known:
            return value.constant if type(value.constant) is int else None
        return default(value)

    @property
    def has_option(self) -> bool:
        """May whoever runs the program say how many workers there are?"""
        value = self.given("num_workers")
        return value is not None and not value.known

    @property
    def ends_workers(self) -> bool:
        """Do its workers end with each pass, as without `persistent_workers`?"""
        value = self.given("persistent_workers")
        return not self.is_open and (value is None or (value.known and not value.constant))

    @property
    def asks_once(self) -> bool:
        """Does it ask for each sample once in a pass, as without a sampler, or with one that is known to do so?"""
        if self.given("batch_sampler") is not None:
            return False
        sampler = self.given("sampler")
        refs = sampler.refs if sampler is not None else frozenset()
        named = all(type(r) is Object and str(r.about).endswith(_WITHOUT_REPLACEMENT) for r in refs)
        return sampler is None or (bool(refs) and named)

    def datasets(self) -> Iterator[Object]:
        """Yield the objects of the project that it loads from, also through what takes a part of them."""
        given = self.given("dataset")
        todo = list(given.refs if given is not None else ())
        for begin in map(root, todo):
            if type(begin) is Object and begin.kind is Kind.INSTANCE:
                yield begin
            elif type(begin) is Object and begin.kind is Kind.OPAQUE:
                whole = self.run.state.heap.get(begin, "dataset")
                todo += [r for r in whole.refs if r not in todo] if whole is not None else ()


def loaders(engine: Engine, run: Run) -> Iterator[Loader]:
    """Yield the loaders that one run makes."""
    names = engine.index.contracts.names("loaders")
    for made in run.effects(fx.Serve):
        if made.name in names and made.point.chain():
            yield Loader(run, made)


def default(value: Value) -> int | None:
    """Return the number that an option of the program is by default: `parser.add_argument("--workers", default=2)`."""
    if len(value.refs) != 1:
        return None
    (option,) = value.refs
    if type(option) is not Behind or type(option.key) is not str or type(option.base) is not Object:
        return None
    site = option.base.site
    if not isinstance(site, Op) or not str(option.base.about).endswith(".parse_args"):
        return None
    for function in site.owner.unit.functions:
        if "add_argument" in function.mentions:
            flow = DefUse(function)
            for op in operations(function.body):
                if isinstance(op, CallMethod) and op.name == "add_argument":
                    found = _default(flow, op, option.key)
                    if found is not None:
                        return found
    return None


def _default(flow: DefUse, op: CallMethod, option: str) -> int | None:
    texts = [_constant(flow, a.temp) for a in op.arguments if a.spread is Spread.PLAIN]
    named = {a.name: _constant(flow, a.temp) for a in op.arguments if a.spread is Spread.NAMED}
    long = [t for t in texts if isinstance(t, str) and t.lstrip("-").replace("-", "_") == option]
    number = named.get("default")
    return number if (long or named.get("dest") == option) and type(number) is int else None


def _constant(flow: DefUse, temp: int) -> object:
    made = flow.made.get(temp)
    return made.value if isinstance(made, Constant) else None
