"""Configuration files that inherit from others, by `extend`."""

from __future__ import annotations

import os
from functools import reduce
from pathlib import Path

from torchmemlint.config.errors import ConfigError
from torchmemlint.config.layers import Layer, anchored, override, read_layer, table_of
from torchmemlint.immutable import immutable
from torchmemlint.regular import is_within


@immutable()
class Chain:
    """A configuration file and those that it inherits from."""

    files: tuple[Path, ...]  # the one that inherits from none first, the file itself last
    layers: tuple[Layer, ...]  # what each says; patterns and paths are relative to the last one's folder, or `Rooted`

    @property
    def layer(self) -> Layer:
        """What they say together; what selects rules is not to be asked of it, but of one after the other."""
        return reduce(override, self.layers)


def chain_of(file: Path, plugins: tuple[str, ...] = ()) -> Chain | None:
    """Read a configuration file with all that it inherits from; None where it is a `pyproject.toml` without our table.

    `plugins` brings rules that all of them may speak of. Raises `ConfigError`.
    """
    table = table_of(file)
    if table is None:
        return None
    files, tables = [file], [table]
    while (given := tables[-1].get("extend")) is not None:
        read_layer({"extend": given}, str(files[-1]))  # for what is no path
        base = _extended(files[-1], str(given))
        if any(base.samefile(one) for one in files):
            raise ConfigError(f"{files[-1]}: `extend`: {base} inherits from this file, too: each would need the other")
        found = table_of(base)
        if found is None:
            raise ConfigError(f"{files[-1]}: `extend`: {base} has no table `tool.torchmemlint`")
        files.append(base)
        tables.append(found)
    layers: list[Layer] = []
    for one, contents in zip(reversed(files), reversed(tables), strict=True):
        layer = read_layer(contents, str(one), plugins)
        plugins = (*plugins, *(layer.plugins or ()))
        layers.append(layer if one is file else anchored(layer, one.parent.absolute()))
    return Chain(tuple(reversed(files)), tuple(layers))


def _extended(file: Path, given: str) -> Path:
    """The file that another one inherits from. Raises `ConfigError` where it is none, or somebody else's."""
    folder = file.parent.absolute()
    base = Path(os.path.normpath(folder / Path(given).expanduser()))  # links are kept, for patterns to match
    if not base.is_file():
        raise ConfigError(f"{file}: `extend`: there is no file {base}")
    top = next((one for one in (folder, *folder.parents) if (one / ".git").exists()), None)
    # Without a repository: configurations above are found anyway, and what lies below came with this one.
    beside = base.resolve().parent in folder.resolve().parents or is_within(base, folder)
    if not (is_within(base, top) if top is not None else beside):
        raise ConfigError(f"{file}: `extend` leads out of {top or folder}: --config FILE may name any file")
    return base
