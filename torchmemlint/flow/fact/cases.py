"""Cases: the facts of a project that are cases of rules, file by file."""

from __future__ import annotations

import enum
import gc
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import replace
from pathlib import Path

from torchmemlint.amounts import Amount, largest
from torchmemlint.doubts import Confidence, Doubt, confidence
from torchmemlint.flow.domain import refs
from torchmemlint.flow.domain.heap import Mode
from torchmemlint.flow.engine.following import note
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact.callers import Calling, calls_another
from torchmemlint.flow.fact.details import Arrival, Built
from torchmemlint.flow.fact.entries import mentions
from torchmemlint.flow.fact.judgement import outcome, overwriting
from torchmemlint.flow.fact.outcomes import Backward, Case, Forward, Outcome, seen_once, surer
from torchmemlint.flow.fact.place import Place
from torchmemlint.flow.fact.wasting import told
from torchmemlint.flow.ir.ops import Unit
from torchmemlint.flow.ir.reaching import forget
from torchmemlint.flow.names.elsewhere import Elsewhere
from torchmemlint.flow.names.finder import InMemory
from torchmemlint.flow.names.importing import Imports
from torchmemlint.flow.names.index import Index
from torchmemlint.flow.names.sources import Sources
from torchmemlint.knowledge.contracts import Contracts, contracts

_SAME = {"TML102": "TML106", "TML103": "TML101"}  # at one place the other says it better
_DIFFERENTIATES = "grad"  # the method by which a network's own code does so
_MOST_REFERENCES = 600_000  # that an engine makes: some 200 bytes each
_UNCALLED = frozenset({Doubt.UNCALLED, Doubt.UNMADE, Doubt.MENTIONED, Doubt.ROLE})  # of what nothing was seen to call
_MOST_CALLERS = 12  # files that call a method by its name, and are run to see how
_MOST_TEXT = 3_000_000  # characters of lowered files: some 100 bytes each, with what their functions do

Group = tuple[Path, ...]  # files that import each other


class _Kind(enum.Enum):
    """How a file is run."""

    CONNECTED = "with those that it imports, and that import it"
    LIBRARY = "by itself; it looks into others of the library"
    ALONE = "by itself; it imports none of the others but a library's, and none of them it"


class Cases:
    """The cases of a project's files.

    A file is run with the files that import each other with it. What is found in another file than the one that was
    run is reported in that: so a file's cases come from its own runs and those of all files that import it.
    """

    def __init__(self, sources: Sources, imports: Imports, known: Contracts) -> None:
        self.sources = sources
        self._known = known
        self._imports = imports
        self._outcomes: dict[Group, Outcome] = {}
        self._calling: dict[str, tuple[Path, ...]] = {}  # by method: the files that call it, or one of its name
        self._asked: dict[Path, set[str]] = {}  # by file: the methods whose callers were looked for
        self._engines: dict[_Kind, Engine] = {}  # what one has run serves all files of its kind
        self._compares = False  # is it asked where graphs go?
        self._age = 0  # how often references had been forgotten when it began

    def of(self, path: Path, pulse: Callable[[], None] | None = None) -> list[Case]:
        """The cases in a file, in order of place, each as the run shows it that has the fewest doubts.

        `pulse` is called again and again on the way, and may end it by raising. Raises what ended the file's own runs.
        """
        failure = self._outcome(self._imports.group(path), pulse).failure
        if failure is not None:
            raise failure
        found: dict[tuple[Place, str], Case] = {}
        large: set[tuple[Place, str]] = set()  # where one of the graphs is
        amounts: dict[tuple[Place, str], list[Amount | None]] = {}
        for case in self._all(path, pulse):
            key = (case.place, case.code)
            if not case.little:
                large.add(key)
            amounts.setdefault(key, []).append(case.amount)
            if case.place.path == path and (key not in found or surer(case, found[key])):
                found[key] = case
        told = {(place.span[0], code) for place, code in found}
        kept = [
            replace(case, little=case.little and (place, code) not in large, amount=largest(amounts[(place, code)]))
            for (place, code), case in found.items()
            if (place.span[0], _SAME.get(code)) not in told
        ]
        return sorted(kept, key=lambda case: (case.place, case.code))

    def overwriting(self, path: Path, pulse: Callable[[], None] | None = None) -> list[Case]:
        """What a file overwrites although something still needs it."""
        return list(overwriting(self._running(path, pulse or (lambda: None)), path))

    def forwards(self, path: Path, pulse: Callable[[], None] | None = None) -> tuple[Forward, ...]:
        """The forward passes in a file, as its own runs and those of the files that import it show them."""
        found = (one for outcome in self._outcomes_on(path, pulse) for one in outcome.forwards)
        return seen_once(one for one in found if one.place.path == path)

    def backwards(self, path: Path, pulse: Callable[[], None] | None = None) -> tuple[Backward, ...]:
        """What differentiates in a file, as its own runs and those of the files that import it show it."""
        found = (one for outcome in self._outcomes_on(path, pulse) for one in outcome.backwards)
        return seen_once(one for one in found if one.place.path == path)

    def loaders(self, path: Path, pulse: Callable[[], None] | None = None) -> tuple[Built, ...]:
        """The loaders that a file builds, with what they are given in all runs."""
        found = (one for outcome in self._outcomes_on(path, pulse) for one in outcome.built)
        return seen_once(one for one in found if one.place.path == path)

    def arriving(self, path: Path, pulse: Callable[[], None] | None = None) -> frozenset[Arrival]:
        """Where graphs go that something may need, in the runs of a file and of the files that import it."""
        groups = self._imports.groups(path)
        for group in groups:
            if group in self._outcomes and self._outcomes[group].arriving is None:
                del self._outcomes[group]
        self._compares = True
        try:
            return frozenset().union(*(self._outcome(group, pulse).arriving or () for group in groups))
        finally:
            self._compares = False

    def needed(self, paths: Iterable[Path]) -> dict[Group, list[Group]]:
        """The files that are run for the cases of some: by group, each with those that show what is called in it.

        A file that has to do with no other is left out: it is run where it is asked for.
        """
        found: dict[Group, list[Group]] = {}
        todo = [group for path in paths if self._kind(path) is _Kind.CONNECTED for group in self._imports.groups(path)]
        while todo:
            group = todo.pop()
            if group not in found and self._imports.matter(group):
                found[group] = self._used_by(group)
                todo += found[group]
        return {group: [other for other in found[group] if other in found] for group in sorted(found)}

    def _kind(self, path: Path) -> _Kind:
        if self._imports.is_library(path):
            return _Kind.LIBRARY
        return _Kind.ALONE if self._imports.is_alone(path) else _Kind.CONNECTED

    def run(self, group: Group, users: list[Outcome]) -> Outcome:
        """Run some files; `users` are what those show that use them. Raises what ended the run."""
        found = self._run(group, users, None)
        if found.failure is not None:
            raise found.failure
        return found

    def put(self, group: Group, outcome: Outcome) -> None:
        """Let this be what some files show."""
        self._outcomes[group] = outcome

    def basis(self, path: Path) -> Iterator[Outcome]:
        """What the cases of a file rest on, as far as it was asked for."""
        for group in self._imports.groups(path):
            yield self._outcomes.get(group, Outcome())
        for method in self._asked.get(path, ()):
            yield Outcome(asked=frozenset({f".{method}("}))
            for group in (group for file in self._callers(method) for group in self._imports.groups(file)):
                found = self._outcomes.get(group, Outcome())
                yield found if found.files else Outcome(files=frozenset(group))  # which was read, and not run

    def is_whole(self, path: Path) -> bool:
        """Was there no more to run in a file than its share of work allows, as far as it was asked for?"""
        return self._outcomes.get(self._imports.group(path), Outcome()).whole

    def concern(self, path: Path) -> tuple[set[Path], set[Path]]:
        """As `Imports.concern`."""
        return self._imports.concern(path)

    def mode_of(self, function: Place, pulse: Callable[[], None] | None = None) -> Mode | None:
        """In which mode is a function called, wherever it is seen to be? In that in which most is recorded."""
        modes: dict[Place, Mode] = {}
        for one in self._outcomes_on(function.path, pulse):
            for called in (one.called, one.left):
                note(modes, ((function, mode) for mode in [called.get(function)] if mode is not None))
        return modes.get(function)

    def library(self, path: Path) -> tuple[Path, ...]:
        """The files of the library that a file belongs to: what it calls of any is looked up when it is run."""
        return self._imports.library(path)

    def unit(self, path: Path) -> Unit | None:
        """A file as operations; None where it is no Python 3."""
        return self.sources.unit(path)

    def users(self, path: Path) -> set[Path]:
        """The files that import a file, directly or not."""
        return {*self._imports.circle(path), *self._imports.users(path)} - {path}

    def checks(self, path: Path, text: str) -> None:
        """Note that a file with this text is to be checked: it need not be one of the project's."""
        if not self._imports.holds(path):
            self._imports.put(path, text)

    def changed(self, path: Path, text: str) -> None:
        """Note that a file has a new text: what rests on the old one is run again when it is asked for."""
        if self.users(path):
            self._engines.clear()  # others were run with what it was
        for engine in self._engines.values():
            engine.index.remove(path)
        self._imports.put(path, text)
        named = {method for method, files in self._calling.items() if path in files or f".{method}(" in text}
        for method in named:
            del self._calling[method]
        stale = {path}
        if path in self._imports.files:
            stale |= self._imports.used(path)  # what it calls of them by now
        for group, known in self._outcomes.items():
            if path in group:
                stale |= known.files  # which of their functions are called, it says
        stale |= {*self._imports.library(path)}
        self._outcomes = {
            group: known
            for group, known in self._outcomes.items()
            if stale.isdisjoint(group) and path not in known.files and named.isdisjoint(known.asked)
        }

    def _all(self, path: Path, pulse: Callable[[], None] | None) -> Iterator[Case]:
        outcomes = self._outcomes_on(path, pulse)
        for one in outcomes:
            for case in one.kept:
                yield from self._where_kept(case, path, pulse)
            yield from (case for case in one.unneeded if not self._is_needed(case.place, pulse))
            yield from one.noted
        for case, method in told(outcomes, path, lambda call: self._is_used(call, pulse)):
            yield from self._as_called(case, method, path, pulse)

    def _as_called(self, case: Case, method: str, path: Path, pulse: Callable[[], None] | None) -> Iterator[Case]:
        """Yield a waste in a method that nothing was seen to call, unless all who call one of its name prevent it."""
        doubts = case.doubts | ({Doubt.UNMADE} if case.unmade else set())
        known = doubts - _UNCALLED
        if not method:
            yield case
            return
        self._asked.setdefault(path, set()).add(method)
        files = self._callers(method)
        if files and confidence(known) is Confidence.POSSIBLE:
            yield case
            return
        if known == doubts and len(files) > _MOST_CALLERS:
            files = ()
        outcomes = [one for file in files[:_MOST_CALLERS] for one in self._outcomes_on(file, pulse)]
        ways = set[Calling]().union(*(one.calling.get(method, ()) for one in outcomes))
        if known != doubts and Calling.RECORDED in ways and Calling.TRAINED not in ways:
            yield replace(case, doubts=known | {Doubt.BY_NAME}, unmade=False)
        elif ways != {Calling.QUIET} or len(files) > _MOST_CALLERS:
            yield case
        elif any(self._records(file, method, pulse) for file in files):
            yield replace(case, doubts=doubts | {Doubt.BY_NAME}, unmade=False)

    def _records(self, file: Path, method: str, pulse: Callable[[], None] | None) -> bool:
        """Does a file call a method whose code was not run, and turn no gradients off?"""
        if any(method in one.calling for one in self._outcomes_on(file, pulse)):
            return False
        return not self._is_quiet(file)

    def _where_kept(self, case: Case, path: Path, pulse: Callable[[], None] | None) -> Iterator[Case]:
        """Yield a case at the first place that keeps nothing which is wanted where it is called otherwise."""
        chain = (case.place, *case.calls)
        if case.loop is None or Doubt.READER in case.doubts:
            yield case
        elif any(call.path == path for call in chain):
            for number, call in enumerate(chain):
                if not any(call in one.wanted for one in self._outcomes_on(call.path, pulse)):
                    yield replace(case, place=call, calls=chain[number + 1 :])
                    return

    def _is_needed(self, backward: Place, pulse: Callable[[], None] | None) -> bool:
        return any(backward in one.needed for one in self._outcomes_on(backward.path, pulse))

    def _is_used(self, call: Place, pulse: Callable[[], None] | None) -> bool:
        return any(call in one.used for one in self._outcomes_on(call.path, pulse))

    def _outcomes_on(self, path: Path, pulse: Callable[[], None] | None) -> list[Outcome]:
        """What the runs of a file, and of those that import it, show."""
        return [self._outcome(group, pulse) for group in self._imports.groups(path)]

    def _unseen_users(self, path: Path) -> list[Path]:
        """The files that import a file and are not run to judge what is in it."""
        return sorted(self.users(path).difference(self._imports.seen_users(path), self._imports.group(path)))

    def _outcome(self, group: Group, pulse: Callable[[], None] | None) -> Outcome:
        found = self._outcomes.get(group)
        if found is None:
            found = Outcome()
            if self._imports.matter(group):
                found = self._run(group, [self._outcome(one, pulse) for one in self._used_by(group)], pulse)
            self._outcomes[group] = found
        return found

    def _used_by(self, group: Group) -> list[Group]:
        """The files that are run before some: what they call in those is known then."""
        return [one for one in self._imports.groups(group[0]) if one != group]

    def _run(self, group: Group, users: list[Outcome], pulse: Callable[[], None] | None) -> Outcome:
        """Run some files. Where that fails, no others fail with them."""
        stops: list[Exception] = []
        mentioned = frozenset(name for user in users for name in user.mentioned)
        using = [path for other in self._used_by(group) for path in other]

        def named(names: Set[str]) -> bool:
            return (names <= mentioned and any(map(self._is_quiet, using))) or self._are_named(names, group[0])

        asked: set[str] = set()

        def quietly(method: str) -> bool:
            asked.update((method, *self._known.off.last_parts))
            return self._calls_quietly(method, group)

        def differentiating() -> list[Unit]:
            asked.add(_DIFFERENTIATES)
            units = [self.sources.unit(path) for path in self._callers(_DIFFERENTIATES)]
            return [unit for unit in units if unit is not None]

        def watched() -> None:
            try:
                if pulse is not None:
                    pulse()
            except Exception as stop:
                stops.append(stop)
                raise

        try:
            engine = self._running(group[0], watched)
            found = outcome(engine, group, users, named, quietly, differentiating, comparing=self._compares)
            return replace(found, asked=frozenset(asked))
        except Exception as error:
            self._engines.clear()
            if stops:
                raise
            return Outcome(files=frozenset(group), failure=error)

    def _are_named(self, names: Set[str], path: Path) -> bool:
        """Does a function mention some names, in a file that imports this and is not run to judge it?"""
        texts = ((user, self.sources.text(user)) for user in self._unseen_users(path))
        units = (self.sources.unit(user) for user, text in texts if all(name in text for name in names))
        return any(names <= mentions([unit]) for unit in units if unit is not None)

    def _calls_quietly(self, method: str, group: Group) -> bool:
        """Does a file that is not of a group turn gradients off, and call a method of this name?"""
        return any(self._is_quiet(path) for path in self._callers(method) if path not in group)

    def _is_quiet(self, path: Path) -> bool:
        text = self.sources.text(path)
        return any(word in text for word in self._known.off.last_parts)

    def _callers(self, method: str) -> tuple[Path, ...]:
        """The files that call a method of this name."""
        if method not in self._calling:
            paths = (path for path in self._imports.files if calls_another(method, self.sources.text(path)))
            self._calling[method] = tuple(sorted(paths))
        return self._calling[method]

    def _running(self, path: Path, pulse: Callable[[], None]) -> Engine:
        """Return the engine of a file; a new one if they have grown too large, or if the references are gone."""
        is_large = refs.made() > _MOST_REFERENCES or self.sources.size > _MOST_TEXT
        if is_large or not self._engines or self._age != refs.forgotten():
            self._forget()
        kind = self._kind(path)
        if kind not in self._engines or kind is _Kind.ALONE:  # which classes others have says nothing of that
            self._engines[kind] = Engine(Index(self.sources, self._known, kind is _Kind.LIBRARY))
        engine = self._engines[kind]
        engine.pulse = pulse
        return engine

    def _forget(self) -> None:
        """Let go of what has been run, but for what it shows. It is one knot of references."""
        had_run = bool(self._engines)
        self._engines.clear()
        self._age = refs.forget()
        self.sources.forget()
        forget()
        if had_run:
            gc.collect()


def cases(files: Mapping[str, str]) -> list[Case]:
    """Return all cases in some files that lie nowhere."""
    root = Path("/")
    project = in_memory({root / name: text for name, text in files.items()}, root)
    found = (case for name in sorted(files) for case in project.of(root / name))
    return [replace(case, place=Place(case.place.path.relative_to(root), case.place.span)) for case in found]


def in_memory(texts: Mapping[Path, str], root: Path, known: Contracts | None = None) -> Cases:
    """The cases of files that need not lie anywhere."""
    known = known or contracts()
    finder = InMemory(root, texts)
    elsewhere = Elsewhere(finder, texts.keys, texts.get, lambda path: sources.unit(path), known.packages)
    sources = Sources(root, elsewhere.place, elsewhere.matching, texts.get, lambda path: imports.is_library(path))
    imports = Imports(texts.items(), elsewhere.place, elsewhere.matching, lambda *_: True)
    return Cases(sources, imports, known)
