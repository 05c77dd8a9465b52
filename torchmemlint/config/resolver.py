"""Which settings apply to a file: the nearest configuration found upwards from it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from torchmemlint.config.errors import ConfigError
from torchmemlint.config.layers import Layer, override, read_layer, table_of
from torchmemlint.config.selection import Selection
from torchmemlint.config.settings import Settings, resolve
from torchmemlint.rules.extensions import PluginError

FILE_NAMES = (".torchmemlint.toml", "torchmemlint.toml", "pyproject.toml")


class Resolver:
    """Finds, reads and keeps settings by directory.

    `root` is the project root (configuration is not looked for above it if it was given explicitly; patterns
    from the command line and from an explicit `config` file are relative to it). Errors are `ConfigError`s.
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
    ) -> None:
        self.root = root
        self._bounded = bounded
        self._layer = layer or Layer()
        self._extend = self._layer.extend or ()
        self._selections: Sequence[Selection] = () if selection is None else (selection,)
        self._by_directory: dict[Path, Settings] = {}
        self._fallback: Settings | None = None
        self._everywhere = isolated or config is not None
        if config is not None:
            with _blaming(config):
                table = table_of(config) or {}
                self._fallback = self._resolve(read_layer(table, str(config), self._extend), root, config)

    @property
    def given(self) -> Layer:
        """What stands over all configuration files."""
        return self._layer

    def settings_for(self, directory: Path) -> Settings:
        """The settings for the files in an absolute directory."""
        if self._everywhere:
            return self.fallback()
        if (known := self._by_directory.get(directory)) is not None:
            return known
        settings = self._read(directory)
        if settings is None:
            parent = directory.parent
            top = parent == directory or (self._bounded and directory == self.root)
            settings = self.fallback() if top else self.settings_for(parent)
        self._by_directory[directory] = settings
        return settings

    def fallback(self) -> Settings:
        """The settings where no configuration is found."""
        if self._fallback is None:
            self._fallback = self._resolve(Layer(), self.root, None)
        return self._fallback

    def _read(self, directory: Path) -> Settings | None:
        for name in FILE_NAMES:
            path = directory / name
            with _blaming(path):
                if path.is_file() and (table := table_of(path)) is not None:
                    return self._resolve(read_layer(table, str(path), self._extend), directory, path)
        return None

    def _resolve(self, layer: Layer, root: Path, source: Path | None) -> Settings:
        return resolve(override(layer, self._layer), root, source, self._selections)


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
