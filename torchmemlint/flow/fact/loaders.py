"""Loaders: what a loader is built with, and where a program iterates over it again and again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.arguments import Arguments
from torchmemlint.flow.domain.heap import contained
from torchmemlint.flow.domain.kinds import Kind
from torchmemlint.flow.domain.refs import Behind, Choice, Code, Counted, Globals, Input, Object, Point, Ref, root
from torchmemlint.flow.domain.values import Value
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact import roles
from torchmemlint.flow.fact.logs import Event, Run
from torchmemlint.flow.ir.ops import Op
from torchmemlint.immutable import immutable

# Source: torch 2.13, utils/data/dataloader.py: DataLoader.__init__.
_POSITIONAL = tuple("dataset batch_size shuffle sampler batch_sampler num_workers collate_fn pin_memory".split())
_IN_ORDER = ("SequentialSampler",)
_WITHOUT_REPLACEMENT = ("DistributedSampler", "SubsetRandomSampler", *_IN_ORDER)


@immutable()
class Number:
    """How many there are: a number, or one for each CPU; `chosen`: unless somebody says otherwise."""

    value: int | Counted
    chosen: bool = False


@immutable(eq=False)
class Loader:
    """A loader that is built in a run."""

    engine: Engine
    run: Run
    event: Event
    name: str  # qualified
    point: Point
    given: Mapping[str, Value]
    more: bool  # or may it be given others?

    @property
    def made(self) -> Object:
        """The loader itself."""
        return Object.of(Kind.OPAQUE, self.point.site, self.point.context, self.name)

    def number(self, name: str, default: int) -> Number | None:
        """Return the number that it is given under a name; None where it is not known."""
        value = self.given.get(name)
        if value is None:
            return None if self.more else Number(default)
        return number(self.engine, self.run, value)

    def constant(self, name: str) -> object:
        """Return the constant that it is given under a name, or by default; `...` where it is not known."""
        value = self.given[name]
        if value.known and not value.open and not value.refs:
            return value.constant
        found = number(self.engine, self.run, value)
        return found.value if found is not None and isinstance(found.value, int) else ...

    def flag(self, name: str, default: bool) -> bool | None:
        """Return the flag that it is given under a name; None where it is not known."""
        value = self.given.get(name)
        if value is None:
            return None if self.more else default
        return bool(value.constant) if value.known and not value.open else None

    def argument(self, name: str) -> Value | None:
        """Return what it is given under a name; None where it is given nothing, or None."""
        value = self.given.get(name)
        return None if value is None or (value.known and value.constant is None) else value

    @property
    def has_workers(self) -> bool:
        """Do processes load for it?"""
        return self.workers is not None and self.workers.value != 0

    @property
    def ends_workers(self) -> bool:
        """Do its workers end with each pass, as without `persistent_workers`?"""
        return self.flag("persistent_workers", False) is False

    @property
    def in_order(self) -> bool | None:
        """Does it ask for the samples in the order of the data set? None where that is not known."""
        if self.argument("batch_sampler") is not None:
            return False
        shuffles = self.flag("shuffle", False)
        return self._has_sampler(_IN_ORDER) if shuffles is False else None if shuffles is None else False

    @property
    def asks_once(self) -> bool:
        """Does it ask for each sample once in a pass, as without a sampler, or with one that is known to do so?"""
        if self.argument("batch_sampler") is not None:
            return False
        return self._has_sampler(_WITHOUT_REPLACEMENT)

    def _has_sampler(self, names: tuple[str, ...]) -> bool:
        """Is it given no sampler, or one of some classes?"""
        sampler = self.argument("sampler")
        refs = sampler.refs if sampler is not None else frozenset()
        named = all(type(r) is Object and str(r.about).endswith(names) for r in refs)
        return sampler is None or (bool(refs) and named)

    def datasets(self) -> Iterator[Object]:
        """Yield the objects of the project that it loads from, also through what takes a part of them."""
        return (one for one in map(root, self.sources()) if type(one) is Object and one.kind is Kind.INSTANCE)

    def sources(self) -> Iterator[Ref]:
        """Yield all that it loads from, also through what takes a part of it."""
        given = self.argument("dataset")
        todo = list(given.refs if given is not None else ())
        for one in todo:
            begin = root(one)
            is_opaque = type(begin) is Object and begin.kind is Kind.OPAQUE
            whole = self.run.state.heap.get(begin, "dataset") if is_opaque else None
            if whole is None:
                yield one
            else:
                todo += [r for r in whole.refs if r not in todo]

    @property
    def workers(self) -> Number | None:
        """Return how many processes load; None where that is not known."""
        return self.number("num_workers", 0)


def loaders(engine: Engine, run: Run) -> Iterator[Loader]:
    """Yield the loaders that are built in one run, but for those of tests."""
    known = engine.index.contracts.names("loaders")
    for event, effect in run.met(fx.Serve):
        sites = effect.point.chain()
        if effect.name in known and sites and not any(roles.is_test(engine, site.owner) for site in sites):
            given, more = named(effect.arguments)
            yield Loader(engine, run, event, effect.name, effect.point, given, more)


def built(engine: Engine, runs: Iterable[Run]) -> dict[Object, Loader]:
    """Return the loaders that are built in some runs, each once."""
    found: dict[Object, Loader] = {}
    for loader in (loader for run in runs for loader in loaders(engine, run)):
        found.setdefault(loader.made, loader)
    return found


def named(arguments: Arguments) -> tuple[dict[str, Value], bool]:
    """Return the arguments of a loader by name, and whether there may be others."""
    given = dict(zip(_POSITIONAL, arguments.positional, strict=False))
    rest = arguments.star is not None or arguments.stars is not None
    return {**given, **arguments.named}, rest or len(arguments.positional) > len(_POSITIONAL)


def number(engine: Engine, run: Run, value: Value) -> Number | None:
    """Return the number that a value is; None where it is not known."""
    if value.known and not value.open and not value.refs:
        return Number(value.constant) if type(value.constant) is int else None
    if len(value.refs) != 1 or value.open:
        return None
    (one,) = value.refs
    match one:
        case Counted():
            return Number(one)
        case Choice(default=int() | Counted() as default):
            return Number(default, chosen=True)
        case Input():
            return _default(engine, run, one)
    return None


def _default(engine: Engine, run: Run, given: Input) -> Number | None:
    """Return the default of a parameter of an entry: what it is unless some caller says otherwise."""
    parameter = next((p for p in given.function.parameters if p.name == given.name), None)
    if parameter is None or not parameter.has_default:
        return None
    value = engine.default(run.state, Code.of(given.function, Globals.of(given.function.unit.name)), parameter)
    if type(value.constant) is int and value.constant > 0 and not value.refs:
        return Number(value.constant, chosen=True)
    return None  # who calls it may well say how many


@immutable()
class Iterated:
    """Where a loader is iterated over, and the loop that repeats this."""

    at: Point
    again: Op


def repeated(loader: Loader, run: Run) -> Iterated | None:
    """Return where a run iterates over a loader again and again, though it is built once."""
    for event, over in _iterations(run):
        if loader.made not in contained(run.state, [over]):
            continue
        for outer in event.around:
            if isinstance(outer, fx.Repeat) and not outer.bounded and outer.loop not in loader.event.loops:
                site = outer.loop.site
                if isinstance(site, Op) and not _is_of_pass(loader, run, outer, event):
                    return Iterated(event.effect.point, site)
    return None


def _iterations(run: Run) -> Iterator[tuple[Event, Value]]:
    """Yield the loops of a run, and the calls of `iter`, with what they iterate over."""
    for event in run.repeats:
        site = event.effect.loop.site
        if isinstance(site, Op):
            at = replace(event, effect=replace(event.effect, point=Point(site, event.effect.loop.context)))
            yield at, event.effect.over
    for asked, effect in run.met(fx.Serve):
        if effect.name == "iter":
            yield asked, effect.arguments.value(0)


def _is_of_pass(loader: Loader, run: Run, outer: fx.Repeat, event: Event) -> bool:
    """Is a loop a part of the same pass, or does each of its rounds have another loader?"""
    generators = [r.about for r in outer.over.refs if type(r) is Object and r.kind is Kind.GENERATOR]
    chain = event.effect.point.chain()
    if chain and any(type(code) is Code and code.function is chain[0].owner for code in generators):
        return True
    return loader.made in contained(run.state, [outer.over])


def data(loader: Loader) -> frozenset[Ref]:
    """Return the data set that a loader is given."""
    value = loader.given.get("dataset")
    own: frozenset[Ref] = Behind.of(loader.made, "dataset").alone  # as it is read from the loader
    return own if value is None else value.refs | own
