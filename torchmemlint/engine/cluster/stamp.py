"""What has to be the same at both ends for the same to be found: told as texts, so that a difference can be named."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import torchmemlint
from torchmemlint.engine.installation import own_files
from torchmemlint.rules import extensions

Stamp = Mapping[str, str]


@cache
def own(plugins: tuple[str, ...] = ()) -> Stamp:
    """Of this process; `plugins` brings rules. Raises `PluginError` where there are none by such a name."""
    from importlib.metadata import version

    brought = (*extensions.installed(), *(extensions.extension(name) for name in plugins))
    return {
        "Python": f"{platform.python_implementation()} {'.'.join(platform.python_version_tuple()[:2])}",
        "system": os.name,
        "libcst": version("libcst"),
        "torchmemlint": f"{torchmemlint.__version__} ({_digest([Path(entry.path) for entry in own_files()])})",
        **{plugin.title: _digest(extensions.files_of(plugin)) for plugin in brought},
    }


def differences(here: Stamp, there: Stamp) -> list[str]:
    """What differs, a phrase each."""
    return [
        f"{name} is {there[name]} there and {here[name]} here"
        if name in here and name in there
        else f"{name} is {'missing there' if name in here else 'missing here'}"
        for name in sorted({*here, *there})
        if here.get(name) != there.get(name)
    ]


def _digest(files: list[Path]) -> str:
    """Of the contents of files and their names, whatever folder they are in."""
    found = hashlib.blake2b(digest_size=4)
    for relative, path in sorted(_named(files)):
        found.update(f"{relative}\0".encode("utf-8", "surrogatepass"))
        found.update(path.read_bytes().replace(b"\r\n", b"\n"))
    return found.hexdigest()


def _named(files: list[Path]) -> Iterator[tuple[str, Path]]:
    above = os.path.commonpath([path.parent for path in files]) if files else ""
    for path in files:
        yield path.relative_to(above).as_posix(), path
