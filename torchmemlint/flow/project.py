"""The files around the checked one: what is run with it, and where the names that it imports lead.

What lies elsewhere (the installed libraries) is not read: knowledge speaks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from torchmemlint.findings import ContextFile, Lead
from torchmemlint.flow.fact.cases import Cases
from torchmemlint.flow.fact.details import Arrival
from torchmemlint.flow.fact.outcomes import Case
from torchmemlint.flow.ir.ops import Class, Function, Unit
from torchmemlint.flow.names.elsewhere import Elsewhere
from torchmemlint.flow.names.finder import Finder
from torchmemlint.flow.names.folders import CHANGED
from torchmemlint.flow.names.importing import BY_NAME, Imports, imported
from torchmemlint.flow.names.needs import Ledger, Needs
from torchmemlint.flow.names.sources import Found, Sources
from torchmemlint.flow.names.suites import is_test
from torchmemlint.flow.program import OTHER_FRAMEWORKS
from torchmemlint.flow.texts import Texts
from torchmemlint.knowledge.contracts import Contracts, contracts
from torchmemlint.regular import is_within
from torchmemlint.source.decoding import UnreadableFile, decode, read
from torchmemlint.source.naming import names_one
from torchmemlint.syntax.trees import Trees

_HOPS = 6  # imports of imports
MAX_FILE = 1_000_000  # bytes; longer files are tables or generated, and are not read for context


class Files:
    """The project's files as they are seen: as they lie on the disk, read when they are asked for.

    An editor puts its own in place: what is open there counts as it stands there.
    """

    def __init__(self, root: Path) -> None:
        self.finder = Finder(root)
        self.texts = Texts(root)
        self.trees = Trees()
        self._read: dict[Path, str | None] = {}  # as the files are run
        self._cases: dict[Contracts, Cases] = {}
        self._imports: dict[Contracts, Elsewhere] = {}  # where they lead

    def cases(self, known: Contracts) -> Cases:
        """The cases of the project's files with these contracts, kept from file to file."""
        if known not in self._cases:
            self._cases[known] = self._new_cases(known)
        return self._cases[known]

    def deciding(self, known: Contracts, path: Path) -> set[Path]:
        """The files that decide whether others import a file: see `Elsewhere`."""
        return self._imports[known].deciding(path)

    def _new_cases(self, known: Contracts) -> Cases:
        named = tuple(f"{word}.".encode() if word.isidentifier() else word.encode() for word in known.packages)

        def matters(text: str, outside: list[str]) -> bool:
            if any(word in dotted for dotted in outside for word in known.packages):
                return True
            return names_one(text.encode("utf-8", "surrogatepass"), named, from_start=True)

        def files() -> Iterator[Path]:
            return map(Path, self.texts.names() or ())

        def texts() -> Iterator[tuple[Path, str]]:
            for path in files():
                text = self.readable(path)
                if text is not None and not is_test(path.name, text):
                    yield path, text

        def is_library(path: Path) -> bool:
            return imports.is_library(path)

        def locate(dotted: str, path: Path) -> Found:
            place, sought = elsewhere.place(dotted, path)
            hidden = place is not None and is_library(place[0]) and not is_library(path)
            return (None if hidden else place), sought

        def matching(pattern: str, path: Path) -> list[Path]:
            return elsewhere.matching(pattern, path)

        sources = Sources(self.finder.root, locate, matching, self.readable, is_library, self.trees.standard)
        elsewhere = self._imports[known] = Elsewhere(self.finder, files, self.readable, sources.unit, known.packages)
        imports = Imports(texts(), elsewhere.place, elsewhere.matching, matters)
        return Cases(sources, imports, known)

    def readable(self, path: Path) -> str | None:
        """The text that a file is run with; None where it cannot be had."""
        if path not in self._read:
            try:
                self._read[path] = self.text(path)
            except (OSError, UnreadableFile):
                self._read[path] = None
        return self._read[path]

    def rest_on(self, paths: Iterable[Path]) -> None:
        """What a check asks for rests on these files."""

    def forget_runs(self) -> None:
        """Files came or went, or changed: run all anew when somebody asks."""
        self._cases.clear()
        self._read.clear()

    def is_to_be_read(self, path: Path) -> None:
        """A file may have another text than it had."""
        known = self._read.pop(path, None)
        text = self.readable(path) if known is not None else None
        if text is not None and text != known:
            self._note(path, text)

    def changed(self, path: Path, text: str) -> None:
        """Let a file be run with this text from now on."""
        known = self._read.get(path)
        self._read[path] = text
        if known is not None and known != text:
            self._note(path, text)
        elif not is_test(path.name, text):
            for cases in self._cases.values():
                cases.checks(path, text)

    def _note(self, path: Path, text: str) -> None:
        for known in list(self._cases):
            if self._imports[known].has_moved(path):
                self._cases[known] = self._new_cases(known)
            self._cases[known].changed(path, "" if is_test(path.name, text) else text)  # what a test calls says nothing

    def text(self, path: Path) -> str | None:
        """The text of a file; None for one that is too long, or lies elsewhere. Raises OSError and UnreadableFile."""
        if not is_within(path, self.finder.root):
            return None  # a relative import, or a link, that leads out of the project
        data = read(path, MAX_FILE + 1)
        return decode(data).text if len(data) <= MAX_FILE else None


class Project:
    """The project below `root`; for one process."""

    def __init__(self, root: Path, promised: Contracts | None = None, files: Files | None = None) -> None:
        self.root = root
        self.files = files or Files(root)
        self.contracts = promised or contracts()
        self._ledger = Ledger()

    @property
    def runs(self) -> Cases:
        """What runs of its files show, as far as they were asked for."""
        return self.files.cases(self.contracts)

    def has_own_tensors(self, packages: Iterable[str], path: Path) -> bool:
        """Has one of the packages of the project that a file imports a `Tensor` that differentiates by itself?"""
        for other in self.mentioning("class Tensor", path) or ():
            unit = self.runs.unit(other)
            cls = unit.once.get("Tensor") if unit is not None else None
            if not isinstance(cls, Class) or cls.bases or "backward" not in cls.methods:
                continue
            self._ledger.followed(path, other, ())
            for package in packages:
                place, sought = self.files.finder.place(f"{package}.Tensor", path)
                self._ledger.followed(path, place[0] if place is not None else None, sought)
                if place is not None and (place[0] == other or place[0].parent in other.parents):
                    return True
        return False

    def mentioning(self, phrase: str, by: Path) -> dict[Path, int] | None:
        """As `Texts.mentioning`, asked on behalf of the file `by`."""
        self._ledger.searched(by, phrase)
        return self.files.texts.mentioning(phrase)

    def cases(self, path: Path, text: str, pulse: Callable[[], None] | None) -> list[Case]:
        """What the runs of a file and of those that import it show of a file with this text."""
        cases = self._cases(path, text)
        found = cases.of(path, pulse)
        for one in cases.basis(path):
            self._ledger.run(path, one.files, one.sought)
            self.files.rest_on(one.files)
            for name in one.asked:
                self._ledger.searched(path, name)
        self._ledger.run(path, self.files.deciding(self.contracts, path), ())
        self._ledger.searched(path, CHANGED)
        self._ledger.searched(path, BY_NAME)
        self._ledger.belongs(path, cases.library(path))
        for user in (path, *cases.users(path)):
            self._ledger.searched(path, _module_name(user))
        return found

    def concerns(self, path: Path, text: str) -> bool:
        """Does a file with this text, which names none of the packages, have to do with files that import one?

        It has if one of those that it imports does, or one of those that import it. In a library each is by itself.
        False for a file that has to do with another framework: its training loops are spelled alike.
        """
        packages = {word for word in self.contracts.packages if word.isidentifier()}
        if not any(self.mentioning(word, path) for word in sorted(packages)):
            return False
        cases = self._cases(path, text)
        mattering, asked = cases.concern(path)
        self._ledger.run(path, asked | self.files.deciding(self.contracts, path), ())
        self._ledger.belongs(path, cases.library(path))
        for phrase in (CHANGED, BY_NAME, *map(_module_name, (path, *cases.users(path)))):
            self._ledger.searched(path, phrase)
        self.files.rest_on(asked)
        roots = {name.partition(".")[0] for one in mattering for name in imported(self.files.readable(one) or "")}
        return not packages.isdisjoint(roots) and OTHER_FRAMEWORKS.isdisjoint(roots)

    def arriving(self, path: Path, text: str, pulse: Callable[[], None] | None) -> frozenset[Arrival]:
        """Where graphs go that something may need, if a file has this text."""
        return self._cases(path, text).arriving(path, pulse)

    def unit(self, path: Path, text: str) -> Unit | None:
        """A file with this text as operations; None where it is no Python 3."""
        return self._cases(path, text).unit(path)

    def function(self, dotted: str, unit: Unit) -> Function | None:
        """The function of another file that a name leads to which a file imports; None for all else."""
        runs, path = self.runs, self.runs.sources.path(unit)
        for _ in range(_HOPS):
            place, sought = runs.sources.locate(dotted, path)
            self._ledger.followed(path, place[0] if place is not None else None, sought)
            other = runs.unit(place[0]) if place is not None and place[1] else None
            if place is None or other is None:
                return None
            found = other.once.get(place[1])
            if isinstance(found, Function):
                return found
            path, dotted = place[0], other.imports.get(place[1], "")
            if not dotted:
                return None
        return None

    def path(self, unit: Unit) -> Path:
        """The file that was lowered to this."""
        return self.runs.sources.path(unit)

    def _cases(self, path: Path, text: str) -> Cases:
        _ = self.runs  # made of the texts that are read for it
        self.files.changed(path, text)
        return self.runs

    def text(self, path: Path) -> str | None:
        """The text of a file; None where it cannot be had."""
        return self.files.readable(path)

    def is_used(self, path: Path) -> bool:
        """Do other files import a file?"""
        return bool(self.runs.users(path))

    def is_whole(self, path: Path) -> bool:
        """Was all of a file run that could tell something? Not where that is more than a file may take."""
        return self.runs.is_whole(path)

    def needs(self, path: Path) -> Needs:
        """What the analyses of a file have rested on, besides the file."""
        return self._ledger.needs(path)

    def context(self, path: Path) -> Iterator[ContextFile]:
        """The other files that were run for what they say about one, as far as they are known."""
        cases = self.runs
        users = cases.users(path)
        for one in sorted({file for outcome in cases.basis(path) for file in outcome.files} - {path}):
            yield ContextFile(one, Lead.IMPORTS if one in users else Lead.IMPORTED, path)


def _module_name(path: Path) -> str:
    """The last name by which a file is imported."""
    return path.stem if path.stem != "__init__" else path.parent.name
