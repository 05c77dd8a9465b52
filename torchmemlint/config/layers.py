"""One layer of configuration, read from a TOML table and validated."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from torchmemlint.config.contracts import Framework
from torchmemlint.config.errors import ConfigError, did_you_mean
from torchmemlint.config.limits import Given
from torchmemlint.config.options import OPTIONS
from torchmemlint.config.selection import expand
from torchmemlint.doubts import Confidence
from torchmemlint.findings import Severity
from torchmemlint.immutable import immutable
from torchmemlint.regular import text_of
from torchmemlint.rules import registry
from torchmemlint.rules.registry import RuleSet

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@immutable()
class Layer:
    """What one source of configuration says; None where it says nothing."""

    preset: str | None = None
    select: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] | None = None
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] | None = None
    severity: tuple[tuple[str, Severity | None], ...] | None = None  # None as a value: off
    extend: tuple[str, ...] | None = None
    fail_on: Severity | None = None
    confidence: Confidence | None = None
    exclude: tuple[str, ...] | None = None
    extend_exclude: tuple[str, ...] | None = None
    respect_gitignore: bool | None = None
    cache_dir: str | None = None
    measurements: str | None = None
    baseline: str | None = None
    target_torch: str | None = None
    limits: Given | None = None
    contracts: tuple[Framework, ...] | None = None


def read_layer(table: Mapping[str, object], where: str, also: tuple[str, ...] = ()) -> Layer:
    """Validate a table; errors name `where` (a file, or the command line) and the key.

    `also` brings rules that it may speak of, besides those of its own `extend`.
    """
    known = {option.key: option for option in OPTIONS}
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in known:
            raise ConfigError(f"{where}: unknown configuration key `{key}`.{did_you_mean(key, known)}")
        try:
            values[key.replace("-", "_")] = known[key].read(value)
        except ConfigError as error:
            raise ConfigError(f"{where}: `{key}`: {error}") from None
    layer = Layer(**values)
    rules = _rules(layer, where, also)
    for key, value in values.items():
        option = known[key.replace("_", "-")]
        try:
            for selector in option.mentions(value):
                expand(selector, rules)
        except ConfigError as error:
            raise ConfigError(f"{where}: `{option.key}`: {error}") from None
    return layer


def _rules(layer: Layer, where: str, also: tuple[str, ...]) -> RuleSet:
    """The rules that a layer may speak of. Of installed plugins the error is theirs, of others it is the layer's."""
    rules = registry.known()
    extend = (*also, *(layer.extend or ()))
    try:
        return registry.known(extend) if extend else rules
    except ConfigError as error:
        raise ConfigError(f"{where}: `extend`: {error}") from None


def override(below: Layer, above: Layer) -> Layer:
    """Both layers as one: what `above` says wins, except that lists named `extend-…` add up, and so do limits."""
    said = {item.name: value for item in fields(above) if (value := getattr(above, item.name)) is not None}
    for key in ("extend", "extend_select", "extend_exclude"):
        if key in said:
            said[key] = tuple(dict.fromkeys((*(getattr(below, key) or ()), *said[key])))
    if "limits" in said:
        said["limits"] = tuple(dict((*(below.limits or ()), *said["limits"])).items())
    return replace(below, **said)


def read_toml(path: Path) -> dict[str, object]:
    """The contents of a TOML file; raises `ConfigError`."""
    try:
        return tomllib.loads(text_of(path, encoding="utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from None
    except RecursionError:
        raise ConfigError(f"{path}: not valid TOML: nested too deeply") from None


def read_inline(text: str, also: tuple[str, ...] = ()) -> Layer:
    """`KEY = VALUE` as given to `--config`; `also` as for `read_layer`."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(
            f"--config {text}: neither a file that exists nor a `KEY = VALUE` pair in TOML: {error}"
        ) from None
    return read_layer(table, f"--config {text}", also)


def table_of(path: Path) -> dict[str, object] | None:
    """The table for us in a configuration file; None if it is a pyproject.toml without one."""
    contents = read_toml(path)
    if path.name != "pyproject.toml":
        return contents
    tool = contents.get("tool")
    table = tool.get("torchmemlint") if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise ConfigError(f"{path}: `tool.torchmemlint` is not a table")
    return table
