"""Workspace folders, each with its settings and the configuration files in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from torchmemlint.config.errors import ConfigError
from torchmemlint.config.layers import Layer
from torchmemlint.config.resolver import Resolver
from torchmemlint.config.selection import Selection
from torchmemlint.config.settings import Settings
from torchmemlint.doubts import Confidence
from torchmemlint.findings import Finding
from torchmemlint.server.files import EditedFiles
from torchmemlint.server.known import KnownFindings
from torchmemlint.server.settings import ClientSettings
from torchmemlint.source.discovery import is_left_out


class Folder:
    """One folder of the workspace; also what stands for the files outside of all of them."""

    def __init__(self, path: Path, settings: ClientSettings) -> None:
        self.path = path
        self.settings = settings
        self.problem: ConfigError | None = None  # with a configuration file
        self._resolver: Resolver | None = None
        self._last_good: dict[Path, Settings] = {}
        self._files: dict[Path, EditedFiles] = {}  # by project root
        self._left_out: dict[Path, bool] = {}
        self._known = KnownFindings(self.settings_for)

    def configure(self, settings: ClientSettings) -> None:
        """Take over changed settings of the client."""
        self.settings = settings
        self.reread()

    def reread(self) -> None:
        """Configuration files changed."""
        self._resolver = None
        self.problem = None
        self._left_out.clear()

    def anew(self) -> None:
        """Source files came, went or changed on the disk."""
        for files in self._files.values():
            files.anew()

    def settings_for(self, directory: Path) -> Settings:
        """The settings for the files of a directory; the last good ones where a configuration file is broken."""
        try:
            found = self.resolver().settings_for(directory)
        except ConfigError as error:
            self.problem = error
            return self._last_good.get(directory) or self._without_files()
        self._last_good[directory] = found
        return found

    def resolver(self) -> Resolver:
        """Finds the settings of a directory. Raises ConfigError where the file that the client names is broken."""
        if self._resolver is None:
            self._resolver = Resolver(
                self.path, config=self.settings.configuration, layer=self._layer(), selection=self._selection()
            )
        return self._resolver

    def files(self, root: Path) -> EditedFiles:
        """The files of the project below `root`, kept from check to check."""
        found = self._files.get(root)
        if found is None:
            found = self._files[root] = EditedFiles(root)
        return found

    def read_baseline(self) -> None:
        """Take notice of what is wrong with the folder's baseline."""
        try:
            self._known.read(self.path / "-")
        except ConfigError as error:
            self.problem = error

    def new_among(self, findings: Sequence[Finding], path: Path, text: Callable[[], str]) -> tuple[Finding, ...]:
        """The findings of a file that are in no baseline; all of them where that cannot be read."""
        try:
            return self._known.without(findings, path, text)
        except ConfigError as error:
            self.problem = error
            return tuple(findings)

    def leaves_out(self, path: Path) -> bool:
        """Is a file excluded, by the configuration or by a `.gitignore`?"""
        found = self._left_out.get(path)
        if found is None:
            found = self._left_out[path] = is_left_out(path, self.settings_for)
        return found

    def _selection(self) -> Selection:
        settings = self.settings
        return Selection(settings.select, settings.extend_select, settings.ignore)

    def _layer(self) -> Layer:
        given = self.settings.confidence
        return Layer(confidence=None if given is None else Confidence(given))

    def _without_files(self) -> Settings:
        return Resolver(self.path, isolated=True, layer=self._layer(), selection=self._selection()).fallback()


class Folders:
    """The folders of the workspace."""

    def __init__(self) -> None:
        self._folders: dict[Path, Folder] = {}
        self._others: dict[Path, Folder] = {}  # by the directory of a file that is in no folder
        self.default = ClientSettings()

    def __iter__(self) -> Iterator[Folder]:
        return iter(list(self._folders.values()))

    def add(self, path: Path, settings: ClientSettings | None = None) -> None:
        """A folder joins the workspace."""
        self._folders[path] = Folder(path, settings or self.default)

    def remove(self, path: Path) -> None:
        """A folder leaves the workspace."""
        self._folders.pop(path, None)

    def get(self, path: Path) -> Folder | None:
        """The folder at exactly this path."""
        return self._folders.get(path)

    def of(self, path: Path) -> Folder:
        """The innermost folder around a file; one of its own where there is none."""
        inside = [folder for folder in self if folder.path in path.parents or folder.path == path]
        if inside:
            return max(inside, key=lambda folder: len(folder.path.parts))
        place = path.parent
        if place not in self._others:
            self._others[place] = Folder(place, self.default)
        return self._others[place]

    def all(self) -> Iterator[Folder]:
        """The folders of the workspace and those that stand for files outside."""
        yield from self
        yield from list(self._others.values())

    def configure(self, settings: ClientSettings) -> None:
        """Settings for all folders."""
        self.default = settings
        for folder in self.all():
            folder.configure(settings)
