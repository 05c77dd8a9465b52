"""A project's files as the editor has them: what is open counts as it stands there, the rest is read once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from torchmemlint.flow.project import MAX_FILE, Files
from torchmemlint.flow.texts import Texts
from torchmemlint.syntax.trees import KeptTrees

MAX_KEPT = 12_000_000  # characters of source whose trees are kept: about a hundred times as many bytes of memory


class EditedFiles(Files):
    """Keeps texts and trees from check to check. To be used by one thread; `changed` may be called by another."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._root = root
        self.trees: KeptTrees = KeptTrees()
        self.buffers: Mapping[Path, str] = {}
        self.asked: set[Path] = set()  # files that the running check has looked at
        self._texts_by_path: dict[Path, tuple[tuple[int, int], str | None]] = {}

    def begin(self, buffers: Mapping[Path, str]) -> None:
        """A check begins, with these texts open."""
        closed = self.buffers.keys() - buffers.keys()
        self.buffers = buffers
        self.texts.edited = buffers
        for path in (*closed, *buffers):
            self.is_to_be_read(path)
        self.texts.was_asked = False
        self.asked = set()
        self.trees.begin()

    def end(self, *, whole: bool) -> None:
        """The check is over; `whole`: it was not stopped on the way."""
        if whole:
            self.trees.end()
        self._trim()

    def text(self, path: Path) -> str | None:
        """As `Files.text`."""
        self.asked.add(path)
        if path in self.buffers:
            text = self.buffers[path]
            return text if len(text) <= MAX_FILE else None
        found = path.stat()
        state = (found.st_mtime_ns, found.st_size)
        known = self._texts_by_path.get(path)
        if known is None or known[0] != state:
            known = self._texts_by_path[path] = (state, super().text(path))
        return known[1]

    def readable(self, path: Path) -> str | None:
        """As `Files.readable`: what cases rest on is taken down when they are asked for."""
        asked, self.asked = self.asked, set()
        try:
            return super().readable(path)
        finally:
            self.asked = asked

    def rest_on(self, paths: Iterable[Path]) -> None:
        """As `Files.rest_on`."""
        self.asked.update(paths)
        self.texts.was_asked = True  # whichever file begins to import one of them matters, too

    def anew(self) -> None:
        """Files came or went, or changed on the disk: nothing that was read of folders holds any more."""
        self.forget_runs()
        fresh = Files(self._root)
        self.finder = fresh.finder
        self.texts = Texts(self._root)

    def _trim(self) -> None:
        """Of all files that are kept, let those go that this check had no need of, if they have become many."""
        if sum(len(text or "") for _, text in self._texts_by_path.values()) > MAX_KEPT:
            self._texts_by_path = {path: kept for path, kept in self._texts_by_path.items() if path in self.asked}
            self.trees.keep_only(self.asked)
