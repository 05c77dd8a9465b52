"""The results of earlier runs, of all projects that a run comes to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path

from torchmemlint.config.settings import Settings
from torchmemlint.engine.cache.results import Results
from torchmemlint.engine.cache.store import default_folder
from torchmemlint.engine.one_file import FileResult, Profile


class Kept:
    """Where results are kept is said by `folder`, else by the settings of each file. A context: written at its end."""

    def __init__(
        self, settings_for: Callable[[Path], Settings], folder: Path | None = None, *, enabled: bool = True
    ) -> None:
        self._settings_for = settings_for
        self._folder = folder
        self._enabled = enabled
        self._results: dict[tuple[Path, Path], Results] = {}

    def __enter__(self) -> Kept:
        return self

    def __exit__(self, *_: object) -> None:
        for results in self._results.values():
            results.close()

    def changed(self, files: Sequence[tuple[Path, Profile]]) -> list[int]:
        """The places of files that no earlier run has seen as they are, told before its results are read.

        Others may have to be checked again, too.
        """
        known = ((number, path, self._of(path, profile)) for number, (path, profile) in enumerate(files))
        return [number for number, path, results in known if results is None or results.has_changed(path)]

    def find(self, files: Sequence[tuple[Path, Profile]]) -> dict[int, FileResult]:
        """Results that still hold, by the files' places in the list."""
        found = {}
        for number, (path, profile) in enumerate(files):
            results = self._of(path, profile)
            result = results.find(path, profile) if results is not None else None
            if result is not None:
                found[number] = result
        return found

    def keep(self, checked: Iterable[tuple[FileResult, Profile]]) -> None:
        """Take in what this run has found."""
        for result, profile in checked:
            results = self._of(result.path, profile)
            if results is not None:
                results.add(result, profile)

    @property
    def complaints(self) -> tuple[str, ...]:
        """Why results could not be kept, a line each."""
        lines = (results.complaint for results in self._results.values() if results.complaint)
        return tuple(f"results of earlier runs are not used: {line}" for line in lines)

    @cached_property
    def _usual_folder(self) -> Path:
        return default_folder()

    def _of(self, path: Path, profile: Profile) -> Results | None:
        if not self._enabled or profile.root is None or profile.spared:
            return None
        folder = self._folder or self._settings_for(path.parent).cache_dir or self._usual_folder
        key = (folder, profile.root)
        if key not in self._results:
            self._results[key] = Results(*key)
        return self._results[key]
