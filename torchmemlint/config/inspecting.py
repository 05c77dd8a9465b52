"""All that is wrong with a configuration file, and where each setting comes from."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

from torchmemlint.config.errors import ConfigError
from torchmemlint.config.inheritance import chain_of
from torchmemlint.config.layers import Layer, read_layer, table_of
from torchmemlint.config.resolver import FILE_NAMES
from torchmemlint.config.settings import Settings, resolve
from torchmemlint.immutable import immutable
from torchmemlint.rules.extensions import PluginError

Keys = tuple[str, ...]  # from the top of our table: key, key in that, ..., item of a list

_TOML_LINE = re.compile(r"\(at line (?P<row>\d+), column \d+\)")
_TABLE = "tool.torchmemlint"
_CHOOSING = (
    "preset",
    "select",
    "extend-select",
    "ignore",
    "severity",
    "preview",
    "explicit-preview-rules",
)  # what decides on which rules are on


@immutable()
class Problem:
    """Something wrong in a configuration file."""

    file: Path
    row: int | None  # from 1; None: of the whole file
    message: str

    def __str__(self) -> str:
        return f"{self.file}{f':{self.row}' if self.row is not None else ''}: {self.message}"


def nearest_file(directory: Path) -> Path | None:
    """The configuration file that counts in a directory. Raises `ConfigError` where one cannot be read."""
    for folder in (directory, *directory.parents):
        for name in FILE_NAMES:
            path = folder / name
            if path.is_file() and table_of(path) is not None:
                return path
    return None


def problems_of(file: Path) -> list[Problem]:
    """All that is wrong with a file, in its order. Raises `PluginError` for an installed plugin that cannot be used."""
    try:
        table = table_of(file) or {}
        text = file.read_text(encoding="utf-8-sig")
    except ConfigError as error:
        message = str(error).removeprefix(f"{file}: ")
        place = _TOML_LINE.search(message)
        return [Problem(file, int(place["row"]) if place is not None else None, message)]
    plugins = (*_inherited(file, table), *_usable(table.get("plugins")))
    found: dict[str, Problem] = {}
    whole = file.name != "pyproject.toml"
    for keys, part in _parts(table):
        message = _wrong_with(partial(read_layer, part, str(file), plugins), file)
        if message:
            found.setdefault(message, Problem(file, row_of(text, keys, whole=whole), message))
    if not found:
        message = _wrong_with(lambda: _resolved(file), file)
        if message:
            named = re.search(r"`([\w-]+)`", message)
            found[message] = Problem(
                file, row_of(text, (named[1],), whole=whole) if named is not None else None, message
            )
    return sorted(found.values(), key=lambda problem: problem.row or 0)


def _resolved(file: Path) -> None:
    chain = chain_of(file)
    if chain is not None:
        resolve(chain.layers, file.parent.absolute(), file)


def _wrong_with(read: Callable[[], object], file: Path) -> str:
    """What an attempt to read says; "" where all is well."""
    try:
        read()
    except PluginError:
        raise
    except ConfigError as error:
        return str(error).removeprefix(f"{file}: ")
    return ""


def origins(settings: Settings, given: Layer, shown: Callable[[Path], str]) -> dict[str, str]:
    """Where each setting was said, by its key: "FILE:ROW", or in a word or two.

    `given` is what stands over the file; `shown` says how a file is named.
    """
    said_in = _said_in(settings.source, shown)
    found = {}
    for field in fields(Layer):
        key = field.name.replace("_", "-")
        said = getattr(given, field.name)
        if said is not None and (key, said) != ("plugins", ()):
            found[key] = "command line"
        else:
            found[key] = said_in.get(key, "default")
    if settings.preset != "default" and found["fail-on"] == "default":
        found["fail-on"] = f"preset {settings.preset}"
    if found["target-torch"] == "default" and settings.required_torch is not None:
        found["target-torch"] = f"what {shown(settings.required_torch.file)} requires of torch"
    choosing = [f"{key} ({found[key]})" for key in _CHOOSING if found[key] != "default"]
    found["select"] = ", ".join(choosing) or "default"
    return found


def _said_in(file: Path | None, shown: Callable[[Path], str]) -> dict[str, str]:
    """Where each key is said, by a configuration file or by one that it inherits from."""
    chain = chain_of(file) if file is not None else None
    found = {}
    for one in chain.files if chain is not None else ():
        text = one.read_text(encoding="utf-8-sig")
        for key in table_of(one) or {}:
            row = row_of(text, (key,), whole=one.name != "pyproject.toml")
            found[key] = f"{shown(one)}:{row}" if row is not None else shown(one)
    return found


def row_of(text: str, keys: Sequence[str], *, whole: bool) -> int | None:
    """The row on which the last of some keys, each within the one before, is written; of the last that is found.

    `whole`: the text is all ours, and not a `pyproject.toml`.
    """
    lines = text.splitlines()
    prefix: list[str] = []
    start, found = 0, None
    if not whole:
        prefix = _TABLE.split(".")
        header = re.compile(rf"\s*\[\s*{re.escape(_TABLE)}\b|\s*tool\s*\.|\s*torchmemlint\s*[.=]|\s*\[\s*tool\s*\]")
        start = next((number for number, line in enumerate(lines) if header.match(line)), 0)
    for depth, key in enumerate(keys):
        before = [*prefix, *keys[:depth]]
        number = next((n for n in range(start, len(lines)) if _writes(lines[n], key, before)), None)
        if number is None:
            break
        start = found = number
    return found + 1 if found is not None else None


def _writes(line: str, key: str, before: Sequence[str]) -> bool:
    """Does a line have a key, as the beginning of a value, in the head of a table or among the items of a list?"""
    if line.lstrip().startswith("#"):
        return False
    word = rf"(?:\"{re.escape(key)}\"|'{re.escape(key)}'|{re.escape(key)})"
    dotted = r"(?:[\w\"'-]+\s*\.\s*)*"
    if re.match(rf"\s*{dotted}{word}\s*(?:\.|=)", line) or re.match(rf"\s*\[\s*{dotted}{word}\s*[\].]", line):
        return True
    # An item of a list, or a key of a table in one line.
    return bool(before) and re.search(rf"\"{re.escape(key)}\"|'{re.escape(key)}'|[{{,]\s*{word}\s*=", line) is not None


def _usable(plugins: object) -> tuple[str, ...]:
    """Those of the words of `plugins` that bring rules, so that the others do not spoil all selectors."""
    words = [word for word in plugins if isinstance(word, str)] if isinstance(plugins, list) else []
    return tuple(word for word in words if not _wrong_with(partial(read_layer, {"plugins": [word]}, ""), Path()))


def _inherited(file: Path, table: Mapping[str, Any]) -> tuple[str, ...]:
    """What brings the rules of the files that a file inherits from, if these are all right."""
    try:
        chain = chain_of(file) if "extend" in table else None
    except ConfigError:
        return ()
    return chain.layer.plugins or () if chain is not None else ()


def _parts(table: Mapping[str, Any]) -> Iterator[tuple[Keys, dict[str, Any]]]:
    """The smallest tables that each say one thing of a table, with their keys."""
    for key, value in table.items():
        for keys, part in _parts_of(value):
            yield (key, *keys), {key: part}


def _parts_of(value: Any) -> Iterator[tuple[Keys, Any]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            for keys, part in _parts_of(inner):
                yield (key, *keys), {key: part}
    elif isinstance(value, list) and value:
        for item in value:
            yield ((item,) if isinstance(item, str) else ()), [item]
    else:
        yield (), value
