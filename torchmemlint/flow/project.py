"""The files around the analysed one: what an imported name stands for, read when it is asked for.

What lies elsewhere (the installed libraries) is not read: knowledge speaks for it.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Set
from pathlib import Path
from typing import TypeVar

from torchmemlint.findings import ContextFile, Lead
from torchmemlint.flow.fact import outcomes
from torchmemlint.flow.fact.cases import Cases
from torchmemlint.flow.fact.outcomes import Case
from torchmemlint.flow.ir.ops import Unit
from torchmemlint.flow.names.elsewhere import Elsewhere
from torchmemlint.flow.names.finder import Finder, Place
from torchmemlint.flow.names.importing import Imports
from torchmemlint.flow.names.needs import Ledger, Needs
from torchmemlint.flow.names.sources import Found, Sources
from torchmemlint.flow.names.suites import is_test
from torchmemlint.flow.program import ClassInfo, Function, Program, Sketch
from torchmemlint.flow.texts import Texts
from torchmemlint.knowledge.contracts import Contracts, contracts
from torchmemlint.regular import is_within
from torchmemlint.source.decoding import UnreadableFile, decode, read
from torchmemlint.source.naming import names_one
from torchmemlint.syntax.source_module import SourceModule
from torchmemlint.syntax.trees import Trees

MAX_BYTES = 3_000_000  # of source that is kept in memory from one analysed file to the next
_SHARE_KEPT = 0.7  # of these, where they have become too many: each time costs a look at all that is kept
MAX_FILE = 1_000_000  # bytes; longer files are tables or generated, and are not read for context
MAX_HOPS = 8  # re-exports followed
MAX_STARS = 60  # files looked at for one name by way of `from module import *`

T = TypeVar("T")


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

    def cases(self, known: Contracts) -> Cases:
        """The cases of the project's files with these contracts, kept from file to file."""
        if known not in self._cases:
            self._cases[known] = self._new_cases(known)
        return self._cases[known]

    def _new_cases(self, known: Contracts) -> Cases:
        words = tuple(word.encode() for word in known.packages)

        def matters(text: str) -> bool:
            return names_one(text.encode("utf-8", "surrogatepass"), words)

        def files() -> Iterator[Path]:
            return map(Path, self.texts.names() or ())

        def texts() -> Iterator[tuple[Path, str]]:
            for path in files():
                text = self.readable(path)
                if text is not None and not is_test(path.name, text):
                    yield path, text

        elsewhere = Elsewhere(self.finder, files, self.readable, known.packages)
        imports = Imports(texts(), elsewhere.place, matters)

        def locate(dotted: str, path: Path) -> Found:
            place, sought = elsewhere.place(dotted, path)
            hidden = place is not None and imports.is_library(place[0]) and not imports.is_library(path)
            return (None if hidden else place), sought

        return Cases(Sources(self.finder.root, locate, self.readable, imports.is_library), imports, known)

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
        if known != text:
            self._read[path] = text
            if known is not None or not is_test(path.name, text):
                self._note(path, text)

    def _note(self, path: Path, text: str) -> None:
        for cases in self._cases.values():
            cases.changed(path, "" if is_test(path.name, text) else text)  # what a test calls says nothing

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
        self.ids = itertools.count(1)  # identities of objects, over all files
        self.read: dict[Path, ContextFile] = {}  # files parsed for context, ever, and what led to each
        self._texts = self.files.texts
        self._reported = 0  # of `read`
        self._ledger = Ledger()
        self._found_once: dict[str, object] = {}
        self._finder = self.files.finder
        self._programs: dict[Path, Program | None] = {}
        self._size = 0  # of these in characters, at most
        self._sketches: dict[Path, Sketch] = {}  # of files that were let go of, or analysed
        self.analyses = 0  # that were made with these as context
        self.asked: Counter[Path] = Counter()  # of these, how many had use for a file
        self._definitions: dict[tuple[str, Path], Function | ClassInfo | None] = {}

    def definition(self, qualified: str, path: Path, lead: Lead = Lead.IMPORT) -> Function | ClassInfo | None:
        """The function or class of the project that a dotted name, as imported by the file `path`, stands for."""
        with self._ledger.of_file(path):
            return self._definition(qualified, path, lead, 0, itertools.count(1))

    def starred(self, program: Program, name: str, lead: Lead) -> Function | ClassInfo | None:
        """What a file has under a name by way of its star imports."""
        with self._ledger.of_file(program.source.path):
            return self._starred(program, name, lead, 0, itertools.count(1))

    def leads_to(self, qualified: str, path: Path, file: Path, name: str) -> bool:
        """Does a dotted name, as imported by the file `path`, stand for what `file` defines as `name`?

        Unlike `definition`, this does not parse `file`.
        """
        with self._ledger.of_file(path):
            return self._leads_to(qualified, path, file, name)

    def _leads_to(self, qualified: str, path: Path, file: Path, name: str) -> bool:
        for _ in range(MAX_HOPS):
            place = self._in_package(self._place(qualified, path))
            if place is None or not place[1]:
                return False
            if place[0] == file:
                return place[1] == name
            program = self._program(place[0], Lead.CALLER, qualified, path)
            if program is None or program.defines(place[1]):
                return False
            forwarded = _forwarded(program, place[1])
            if forwarded is None:
                return any(
                    self._place(_join(module, place[1]), place[0]) == (file, name) for module in program.star_imports
                )
            qualified, path = forwarded, place[0]
        return False

    def program(self, path: Path, lead: Lead, name: str, by: Path) -> Program | None:
        """The functions and classes of a file; None where it cannot be read. `name` in the file `by` led to it."""
        with self._ledger.by(by):
            return self._program(path, lead, name, by)

    def parsed(self, path: Path, text: str) -> SourceModule | None:
        """The file as it was parsed for context, if it was, is kept and has this text: parsing it again is spared."""
        program = self._programs.get(path) if self.files.trees.may_share else None
        known = program.source if program is not None else None
        return known if known is not None and known.text == text and known.is_parsed else None

    def keep_sketch(self, program: Program) -> None:
        """Take down what makes it cheap to read a file for context that has been read before."""
        sketch = program.sketch() if self.files.trees.may_share else None
        if sketch is not None:
            self._sketches[program.source.path] = sketch

    def mentioning(self, phrase: str, by: Path) -> dict[Path, int] | None:
        """As `Texts.mentioning`, asked on behalf of the file `by`."""
        with self._ledger.by(by):
            self._ledger.searched(phrase)
        return self._texts.mentioning(phrase)

    def cases(self, path: Path, text: str, pulse: Callable[[], None] | None) -> list[Case]:
        """What the runs of a file and of those that import it show of a file with this text."""
        cases = self.files.cases(self.contracts)  # made of the texts that are read for it
        self.files.changed(path, text)
        found = cases.of(path, pulse)
        with self._ledger.by(path):
            for one in cases.basis(path):
                self._ledger.run(one.files, one.sought)
                self.files.rest_on(one.files)
            library = cases.library(path)
            if library:
                with self._ledger.asking(("library", library[0])):  # once for all of its files
                    self._ledger.run(library, ())
            for user in (path, *cases.users(path)):
                self._ledger.searched(user.stem if user.stem != "__init__" else user.parent.name)
        return found

    def unit(self, path: Path, text: str) -> Unit | None:
        """A file with this text as operations; None where it is no Python 3."""
        cases = self.files.cases(self.contracts)  # made of the texts that are read for it
        self.files.changed(path, text)
        return cases.unit(path)

    def run(self, path: Path, text: str, pulse: Callable[[], None] | None) -> Cases:
        """The cases of the project's files, after a file with this text was run, and those that import it."""
        self.cases(path, text, pulse)  # takes down what that rests on, too
        return self.files.cases(self.contracts)

    def runs_without_gradients(self, function: outcomes.Place, text: str, pulse: Callable[[], None] | None) -> bool:
        """Is a function in a file with this text called with gradients off, wherever it is seen to be called?"""
        return self.run(function.path, text, pulse).runs_without_gradients(function, pulse)

    def overwriting(self, path: Path, text: str, pulse: Callable[[], None] | None) -> list[Case]:
        """What a file with this text overwrites although something still needs it."""
        return self.run(path, text, pulse).overwriting(path, pulse)

    def loaders(self, path: Path, text: str, pulse: Callable[[], None] | None) -> list[outcomes.Built]:
        """The loaders that a file with this text builds."""
        self.cases(path, text, pulse)  # takes down what that rests on, too
        return self.files.cases(self.contracts).loaders(path, pulse)

    def text(self, path: Path) -> str | None:
        """The text of a file; None where it cannot be had."""
        return self.files.readable(path)

    def is_used(self, path: Path) -> bool:
        """Do other files import a file?"""
        return bool(self.files.cases(self.contracts).users(path))

    def holds(self, path: Path) -> bool:
        """As `Texts.holds`: is this one of the files that are searched?"""
        return self._texts.holds(path)

    def package(self, path: Path, by: Path) -> Path | None:
        """The folder of the outermost package that a file is in, asked on behalf of the file `by`."""
        with self._ledger.by(by):
            found: Path | None = None
            for folder in path.parents:
                self._ledger.sought(frozenset({str(folder / "__init__.py")}))
                if not self._finder.is_package(str(folder)):
                    break
                found = folder
        return found

    def once(self, question: str, by: Path, find: Callable[[], T]) -> T:
        """The answer to a question about the whole project, found when the file `by` is the first to ask it."""
        key = (question, self.root)
        with self._ledger.of_file(by):
            if question in self._found_once:
                self._ledger.asked(key)
            else:
                with self._ledger.asking(key):
                    self._found_once[question] = find()
        found: T = self._found_once[question]  # type: ignore[assignment]
        return found

    def needs(self, path: Path) -> Needs:
        """What the analyses of a file have rested on, besides the file."""
        return self._ledger.needs(path)

    def _place(self, qualified: str, path: Path) -> Place | None:
        place, sought = self._finder.place(qualified, path)
        self._ledger.sought(sought)
        return place

    def _in_package(self, place: Place | None) -> Place | None:
        """Where a name that leads to a module is looked for first: `package.Model`, in `package/Model.py`, is the
        class that the package imports under that name."""
        if place is None or place[1] or place[0].name == "__init__.py":
            return place
        file, name = place[0].parent / "__init__.py", place[0].stem
        self._ledger.sought(frozenset({str(file)}))
        if not self._finder.is_package(str(file.parent)) or not self._may_export(file, name):
            return place
        return file, name

    def _program(self, path: Path, lead: Lead, name: str, by: Path) -> Program | None:
        self._ledger.read(path)
        if path in self._programs:
            known = self._programs[path]
            return known.asked(known) if known is not None else None
        self.read.setdefault(path, ContextFile(path, lead, name, by))
        program: Program | None = None
        try:
            text = self.files.text(path)
            if text is not None:
                sketch = self._sketches.get(path)
                layout = sketch.layout if sketch is not None and sketch.layout.fits(text) else None
                source = SourceModule(text, path, context=True, trees=self.files.trees, layout=layout)
                program = Program(source, self, known=sketch if layout is not None else None)
                program.asked(program)
                self._size += len(text)
        except (OSError, UnreadableFile, RecursionError):
            program = None
        self._programs[path] = program
        return program

    def news(self) -> tuple[ContextFile, ...]:
        """The files parsed for context since this was asked last."""
        found = tuple(itertools.islice(self.read.values(), self._reported, None))
        self._reported = len(self.read)
        return found

    def trim(self) -> None:
        """Let go of files that were not asked for longest, where they have become many; between two analyses."""
        self.analyses += 1
        if self._size <= MAX_BYTES:
            return
        programs = [program for program in self._programs.values() if program is not None]
        size = sum(len(program.source.text) for program in programs)
        gone: set[Program] = set()
        # One that many analyses have asked for stays longer: for as many more as have.
        for program in sorted(programs, key=lambda one: one.asked_in + self.asked[one.source.path]):
            if size <= _SHARE_KEPT * MAX_BYTES:
                break
            gone.add(program)
            size -= len(program.source.text)
        self._size = size
        self._let_go(gone)

    def let_go(self, path: Path) -> None:
        """Have a file read anew when it is asked for."""
        program = self._programs.get(path)
        self._let_go({program} if program is not None else set())

    def _let_go(self, gone: Set[Program]) -> None:
        if not gone:
            return
        for program in gone:
            del self._programs[program.source.path]
        paths = {program.source.path for program in gone}
        self._definitions = {
            key: found
            for key, found in self._definitions.items()
            if key[1] not in paths and (found is None or found.program not in gone)
        }
        for kept in self._programs.values():
            if kept is not None:
                kept.forget(gone)
        for program in gone:
            self.keep_sketch(program)
            program.release()

    def release(self) -> None:
        """Let go of all files."""
        programs = [program for program in self._programs.values() if program is not None]
        self._programs.clear()
        self._definitions.clear()
        for program in programs:
            program.release()

    def _definition(
        self, qualified: str, path: Path, lead: Lead, hops: int, looked_at: Iterator[int]
    ) -> Function | ClassInfo | None:
        module = self._place(qualified, path)
        place = self._in_package(module)
        if place is None or hops > MAX_HOPS:
            return None
        file, name = place
        if not name or file == path:
            return None
        found = self._found(name, file, lead, qualified, path, hops, looked_at)
        return found if place == module or isinstance(found, ClassInfo) else None

    def _found(
        self, name: str, file: Path, lead: Lead, qualified: str, path: Path, hops: int, looked_at: Iterator[int]
    ) -> Function | ClassInfo | None:
        key = (name, file)
        if key in self._definitions:
            self._ledger.asked(key)
            known = self._definitions[key]
            return known.program.asked(known) if known is not None else None
        self._definitions[key] = None  # for imports in a circle
        with self._ledger.asking(key):
            program = self._program(file, lead, qualified, path)
            found = self._defined(program, name, lead, hops, looked_at) if program is not None else None
        self._definitions[key] = found
        return found

    def _defined(
        self, program: Program, name: str, lead: Lead, hops: int, looked_at: Iterator[int]
    ) -> Function | ClassInfo | None:
        """What a file defines or has imported under a name."""
        found = program.find_function(name) or program.find_class(name)
        if found is not None:
            return found
        file = program.source.path
        forwarded = _forwarded(program, name)
        if forwarded is not None:
            return self._definition(forwarded, file, lead, hops + 1, looked_at)
        return self._starred(program, name, lead, hops, looked_at)

    def _starred(
        self, program: Program, name: str, lead: Lead, hops: int, looked_at: Iterator[int]
    ) -> Function | ClassInfo | None:
        file = program.source.path
        if program.star_imports and not self._is_defined(name.partition(".")[0], file):
            return None
        for module in program.star_imports:
            if next(looked_at) > MAX_STARS:
                return None
            qualified = _join(module, name)
            place = self._place(qualified, file)
            if place is not None and self._may_export(*place):
                found = self._definition(qualified, file, lead, hops + 1, looked_at)
                starred = self._programs.get(place[0])
                if found is not None and starred is not None and starred.exports(name):
                    return found
        return None

    def _is_defined(self, name: str, by: Path) -> bool:
        """Does a class, function or import anywhere have this name? A search of all text spares parsing many files."""

        def is_found() -> bool:
            phrases = (f"class {name}", f"def {name}", f"as {name}")
            return any(self.mentioning(phrase, by) != {} for phrase in phrases)

        return not self._texts.holds(by) or self.once(f"is {name} defined", by, is_found)

    def _may_export(self, file: Path, name: str) -> bool:
        """Does the text of a file allow `import *` to give the name? Parsing costs fifty times as much as this."""
        self._ledger.read(file)
        if file in self._programs:
            return True
        try:
            text = self.files.text(file)
        except (OSError, UnreadableFile):
            return False
        return text is not None and ("import *" in text or re.search(rf"\b{re.escape(name)}\b", text) is not None)


def _forwarded(program: Program, name: str) -> str | None:
    """What the file has imported under a name, or under the first part of a dotted one."""
    first, dot, rest = name.partition(".")
    imported = program.imported.get(first)
    return imported + dot + rest if imported is not None else None


def _join(module: str, name: str) -> str:
    return f"{module}{'' if module.endswith('.') else '.'}{name}"
