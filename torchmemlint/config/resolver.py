"""Which settings apply to a file: the nearest configuration found upwards from it.

Where that has no `target-torch`, the nearest file that asks for a release of torch tells.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from torchmemlint.config.errors import ConfigError
from torchmemlint.config.inheritance import chain_of
from torchmemlint.config.layers import Layer, anchored
from torchmemlint.config.requirement import required_torch
from torchmemlint.config.selection import Selection
from torchmemlint.config.settings import Given, Settings, resolve
from torchmemlint.rules.extensions import PluginError

FILE_NAMES = (".torchmemlint.toml", "torchmemlint.toml", "pyproject.toml")


class Resolver:
    """Finds, reads and keeps settings by directory.

    `root` is the project root (configuration is not looked for above it if it was given explicitly; patterns
    from the command line and from an explicit `config` file are relative to it). `selection` and `fixable` go before
    what files select. Errors are `ConfigError`s.
    """

    def __init__(
        self,
        root: Path,
        *,
        bounded: bool = False,
        config: Path | None = None,
        isolated: bool = False,
        layer: Layer | None = None,
        selection: Selection | None = None,
        fixable: Selection | None = None,
    ) -> None:
        self.root = root
        self._bounded = bounded
        self._layer = layer or Layer()
        self._given = Given(
            anchored(self._layer, root),
            () if selection is None else (selection,),
            () if fixable is None else (fixable,),
        )
        self._plugins = self._layer.plugins or ()
        self._by_directory: dict[Path, Settings] = {}
        self._fallback: Settings | None = None
        self._everywhere = isolated or config is not None
        if config is not None:
            with _blaming(config):
                chain = chain_of(config, self._plugins)
                self._fallback = self._resolve(chain.layers if chain is not None else (Layer(),), root, config)

    @property
    def given(self) -> Layer:
        """What stands over all configuration files."""
        return self._layer

    def notices(self) -> tuple[str, ...]:
        """What there is to say of the settings that were asked for so far, each once."""
        known = (*self._by_directory.values(), *([self._fallback] if self._fallback is not None else []))
        return tuple(dict.fromkeys(notice for settings in known for notice in settings.notices))

    def settings_for(self, directory: Path) -> Settings:
        """The settings for the files in an absolute directory."""
        if (known := self._by_directory.get(directory)) is not None:
            return known
        settings = self._read(directory) if not self._everywhere else None
        if settings is None:
            settings = self.fallback() if self._is_top(directory) else self.settings_for(directory.parent)
            if directory != settings.root and directory.is_relative_to(settings.root):
                settings = _with_torch_of(directory, settings)
        self._by_directory[directory] = settings
        return settings

    def _is_top(self, directory: Path) -> bool:
        """Is there nothing above a directory that speaks of it?"""
        if directory.parent == directory or (self._bounded and directory == self.root):
            return True
        return self._everywhere and (directory == self.root or not directory.is_relative_to(self.root))

    def fallback(self) -> Settings:
        """The settings where no configuration is found."""
        if self._fallback is None:
            self._fallback = self._resolve((Layer(),), self.root, None)
        return self._fallback

    def _read(self, directory: Path) -> Settings | None:
        for name in FILE_NAMES:
            path = directory / name
            with _blaming(path):
                if path.is_file() and (chain := chain_of(path, self._plugins)) is not None:
                    return self._resolve(chain.layers, directory, path)
        return None

    def _resolve(self, layers: Sequence[Layer], root: Path, source: Path | None) -> Settings:
        return _with_torch_of(root, resolve(layers, root, source, self._given))


def _with_torch_of(directory: Path, settings: Settings) -> Settings:
    """The settings as they are in a directory, which may ask for another release of torch than what is above it."""
    found = required_torch(directory) if settings.given_torch is None else None
    return replace(settings, required_torch=found) if found is not None else settings


@contextlib.contextmanager
def _blaming(file: Path) -> Iterator[None]:
    """What is wrong within is wrong with this file."""
    try:
        yield
    except PluginError:  # of an installed plugin, which would be wrong without the file, too
        raise
    except ConfigError as error:
        error.file = file
        raise
