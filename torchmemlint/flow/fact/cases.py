"""Cases: the facts of a project that are cases of rules, file by file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from torchmemlint.doubts import Doubt, rank
from torchmemlint.flow.domain import refs
from torchmemlint.flow.fact.outcomes import Case, Outcome, Place, outcome
from torchmemlint.flow.names.finder import InMemory
from torchmemlint.flow.names.importing import Imports
from torchmemlint.flow.names.sources import Sources

_SAME = {"TML102": "TML106", "TML103": "TML101"}  # at one place the other says it better


class Cases:
    """The cases of a project's files.

    A file is run with the files that import each other with it. What is found in another file than the one that was
    run is reported in that: so a file's cases come from its own runs and those of all files that import it.
    """

    def __init__(self, sources: Sources, imports: Imports) -> None:
        self._sources = sources
        self._imports = imports
        self._outcomes: dict[tuple[Path, ...], Outcome] = {}

    def of(self, path: Path) -> list[Case]:
        """The cases in a file, in order of place, each with the fewest doubts that any run has."""
        found: dict[tuple[Place, str], Case] = {}
        for case in self._all(path):
            key = (case.place, case.code)
            if case.place.path == path and (key not in found or rank(case.doubts) < rank(found[key].doubts)):
                found[key] = case
        told = {(place.span[0], code) for place, code in found}
        kept = [case for (place, code), case in found.items() if (place.span[0], _SAME.get(code)) not in told]
        return sorted(kept, key=lambda case: (case.place, case.code))

    def _all(self, path: Path) -> Iterator[Case]:
        for one in self._outcomes_on(path):
            for case in one.kept:
                yield from self._where_kept(case, path)
            for waste in one.wasted:
                if any(call.path == path for call in waste.calls):
                    unused = [n for n, call in enumerate(waste.calls) if not self._is_used(call)]
                    own = [n for n in unused if waste.own[n]]
                    if unused:
                        yield waste.at((own or unused)[0])

    def _where_kept(self, case: Case, path: Path) -> Iterator[Case]:
        """Yield a case at the first place that keeps nothing which is wanted where it is called otherwise."""
        chain = (case.place, *case.calls)
        if case.loop is None or Doubt.READER in case.doubts:
            yield case
        elif any(call.path == path for call in chain):
            for number, call in enumerate(chain):
                if not any(call in one.wanted for one in self._outcomes_on(call.path)):
                    yield replace(case, place=call, calls=chain[number + 1 :])
                    return

    def _is_used(self, call: Place) -> bool:
        return any(call in one.used for one in self._outcomes_on(call.path))

    def _outcomes_on(self, path: Path) -> list[Outcome]:
        """What the runs of a file, and of those that import it, show."""
        groups = {self._imports.group(user) for user in (path, *self._imports.users(path))}
        return [self._outcome(group) for group in sorted(groups)]

    def _outcome(self, group: tuple[Path, ...]) -> Outcome:
        found = self._outcomes.get(group)
        if found is None:
            users = {self._imports.group(user) for user in self._imports.users(group[0])}
            called = {function for user in sorted(users) for function in self._outcome(user).called}
            refs.forget()
            found = self._outcomes[group] = outcome(self._sources, group, called)
        return found


def check(files: Mapping[str, str]) -> list[tuple[str, int, str, str]]:
    """Return (file, line, code, confidence) of all cases in some files, which may import each other."""
    return [(c.file, c.line, c.code, "advice" if c.advice else c.confidence.value) for c in cases(files)]


def cases(files: Mapping[str, str]) -> list[Case]:
    """Return all cases in some files that lie nowhere."""
    root = Path("/")
    texts = {root / name: text for name, text in files.items()}
    finder = InMemory(root, texts)

    def locate(dotted: str, path: Path) -> tuple[Path, str] | None:
        return finder.place(dotted, path)[0]

    project = Cases(Sources(root, locate, texts.get), Imports(texts.items(), locate))
    found = (case for path in sorted(texts) for case in project.of(path))
    return [replace(case, place=Place(case.place.path.relative_to(root), case.place.span)) for case in found]
