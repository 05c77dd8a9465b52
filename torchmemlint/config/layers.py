"""One layer of configuration, read from a TOML table and validated."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from torchmemlint import __version__
from torchmemlint.config.contracts import Framework
from torchmemlint.config.errors import ConfigError, did_you_mean
from torchmemlint.config.limits import Given
from torchmemlint.config.options import OPTIONS
from torchmemlint.config.patterns import Text, rooted
from torchmemlint.config.selection import expand
from torchmemlint.config.versions import satisfies
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

    extend: str | None = None
    required_version: str | None = None
    preset: str | None = None
    select: tuple[str, ...] | None = None
    extend_select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] | None = None
    per_file_ignores: tuple[tuple[Text, tuple[str, ...]], ...] | None = None
    extend_per_file_ignores: tuple[tuple[Text, tuple[str, ...]], ...] | None = None
    severity: tuple[tuple[str, Severity | None], ...] | None = None  # None as a value: off
    plugins: tuple[str, ...] | None = None
    preview: bool | None = None
    explicit_preview_rules: bool | None = None
    fail_on: Severity | None = None
    confidence: Confidence | None = None
    fix: bool | None = None
    fix_only: bool | None = None
    unsafe_fixes: bool | None = None
    show_fixes: bool | None = None
    fixable: tuple[str, ...] | None = None
    extend_fixable: tuple[str, ...] | None = None
    unfixable: tuple[str, ...] | None = None
    extend_safe_fixes: tuple[str, ...] | None = None
    extend_unsafe_fixes: tuple[str, ...] | None = None
    output_format: str | None = None
    exclude: tuple[Text, ...] | None = None
    extend_exclude: tuple[Text, ...] | None = None
    respect_gitignore: bool | None = None
    force_exclude: bool | None = None
    cache_dir: Text | None = None
    measurements: Text | None = None
    baseline: Text | None = None
    target_torch: str | None = None
    limits: Given | None = None
    contracts: tuple[Framework, ...] | None = None


_ADDING_UP = (
    *("plugins", "extend_select", "extend_exclude", "extend_per_file_ignores", "extend_fixable"),
    *("extend_safe_fixes", "extend_unsafe_fixes"),
)


def read_layer(table: Mapping[str, object], where: str, also: tuple[str, ...] = ()) -> Layer:
    """Validate a table; errors name `where` (a file, or the command line) and the key.

    `also` brings rules that it may speak of, besides those of its own `plugins`. A table for another version of this
    program is refused before it is looked at.
    """
    known = {option.key: option for option in OPTIONS}
    values: dict[str, Any] = {}
    for key, value in sorted(table.items(), key=lambda item: item[0] != "required-version"):  # stable
        if key not in known:
            raise ConfigError(f"{where}: unknown configuration key `{key}`.{did_you_mean(key, known)}")
        try:
            values[key.replace("-", "_")] = known[key].read(value)
        except ConfigError as error:
            raise ConfigError(f"{where}: `{key}`: {error}") from None
        if key == "required-version" and not satisfies(__version__, values["required_version"]):
            raise ConfigError(f"{where}: `{key}`: it asks for {value}, and this is torchmemlint {__version__}")
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
    plugins = (*also, *(layer.plugins or ()))
    try:
        return registry.known(plugins) if plugins else rules
    except ConfigError as error:
        raise ConfigError(f"{where}: `plugins`: {error}") from None


def override(below: Layer, above: Layer) -> Layer:
    """Both layers as one: what `above` says wins.

    But `plugins` and lists named `extend-…` add up, and so do severities, limits and contracts of different names.
    """
    said = {item.name: value for item in fields(above) if (value := getattr(above, item.name)) is not None}
    for key in _ADDING_UP:
        if key in said:
            said[key] = tuple(dict.fromkeys((*(getattr(below, key) or ()), *said[key])))
    for key in ("limits", "severity"):
        if key in said:
            said[key] = tuple(dict((*(getattr(below, key) or ()), *said[key])).items())
    if "contracts" in said:
        said["contracts"] = tuple({one.name: one for one in (*(below.contracts or ()), *said["contracts"])}.values())
    return replace(below, **said)


def anchored(layer: Layer, folder: Path) -> Layer:
    """The same for settings of another folder: its patterns and paths stay relative to its own one."""
    said: dict[str, Any] = {}
    for key in ("exclude", "extend_exclude"):
        if (patterns := getattr(layer, key)) is not None:
            said[key] = tuple(rooted(pattern, folder) for pattern in patterns)
    for key in ("per_file_ignores", "extend_per_file_ignores"):
        if (table := getattr(layer, key)) is not None:
            said[key] = tuple((rooted(pattern, folder), codes) for pattern, codes in table)
    for key in ("cache_dir", "measurements", "baseline"):
        if (path := getattr(layer, key)) is not None:
            said[key] = rooted(path, folder)
    return replace(layer, **said)


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
    if "extend" in table:
        raise ConfigError(f"--config {text}: only a file inherits from another: give the file itself by --config FILE")
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
