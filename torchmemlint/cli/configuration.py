"""From the options of `check` to settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import click

from torchmemlint.config import readers
from torchmemlint.config.errors import ConfigError
from torchmemlint.config.layers import Layer, override, read_inline
from torchmemlint.config.limits import Given, limit_of
from torchmemlint.config.patterns import validate
from torchmemlint.config.presets import BY_NAME
from torchmemlint.config.resolver import Resolver
from torchmemlint.config.selection import Selection, expand
from torchmemlint.doubts import Confidence
from torchmemlint.findings import Severity
from torchmemlint.immutable import immutable
from torchmemlint.rules import registry
from torchmemlint.rules.extensions import PluginError, extension_of

T = TypeVar("T")


@immutable()
class ConfigurationOptions:
    """The options of `check` that decide on settings, as given."""

    select: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file_ignores: tuple[str, ...] = ()
    extend_per_file_ignores: tuple[str, ...] = ()
    fail_on: str | None = None
    config: tuple[str, ...] = ()
    isolated: bool = False
    project_root: Path | None = None
    plugins: tuple[str, ...] = ()
    preset: str | None = None
    limit: tuple[str, ...] = ()
    confidence: str | None = None
    preview: bool | None = None
    fixable: tuple[str, ...] = ()
    extend_fixable: tuple[str, ...] = ()
    unfixable: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    extend_exclude: tuple[str, ...] = ()
    respect_gitignore: bool | None = None
    target_torch: str | None = None


def resolver_for(options: ConfigurationOptions) -> Resolver:
    """The resolver of a run; raises click's usage errors, and `ConfigError` for a configuration file."""
    root = (options.project_root or Path.cwd()).absolute()
    plugins = tuple(extension_of(word) for word in options.plugins)
    file = _config_file(options.config)
    if options.isolated and file is not None:
        raise click.UsageError("--isolated and a configuration file given by --config contradict each other.")

    def spoken_of() -> tuple[str, ...]:
        """All that brings rules, by the command line or by the configuration that holds at the root."""
        bounded = options.project_root is not None
        there = Resolver(root, bounded=bounded, config=file, isolated=options.isolated, layer=Layer(plugins=plugins))
        return there.settings_for(root).plugins

    def ignores(option: str, given: tuple[str, ...]) -> tuple[tuple[str, tuple[str, ...]], ...] | None:
        table = _per_file_ignores(option, given) if given else None
        for _, selectors in table or ():
            _selectors(option, selectors, plugins, spoken_of)
        return table

    layer = Layer(plugins=plugins)
    for text in options.config:
        if not _is_file(text):
            layer = override(layer, _either(partial(read_inline, text), plugins, spoken_of))
            plugins = layer.plugins or ()
    if options.preset is not None:
        layer = override(layer, Layer(preset=options.preset, fail_on=BY_NAME[options.preset].fail_on))
    if options.fail_on is not None:
        layer = override(layer, Layer(fail_on=Severity(options.fail_on)))
    if options.confidence is not None:
        layer = override(layer, Layer(confidence=Confidence(options.confidence)))
    if options.limit:
        layer = override(layer, Layer(limits=_limits(options.limit)))
    layer = override(
        layer,
        Layer(
            preview=options.preview,
            respect_gitignore=options.respect_gitignore,
            target_torch=_torch(options.target_torch),
            exclude=_patterns("--exclude", options.exclude),
            extend_exclude=_patterns("--extend-exclude", options.extend_exclude),
        ),
    )
    layer = override(
        layer,
        Layer(
            per_file_ignores=ignores("--per-file-ignores", options.per_file_ignores),
            extend_per_file_ignores=ignores("--extend-per-file-ignores", options.extend_per_file_ignores),
        ),
    )
    select = _selectors("--select", options.select, plugins, spoken_of)
    selection = Selection(
        select if options.select else None,
        _selectors("--extend-select", options.extend_select, plugins, spoken_of),
        _selectors("--ignore", options.ignore, plugins, spoken_of),
        options.preset,
    )
    fixable = _selectors("--fixable", options.fixable, plugins, spoken_of)
    fixes = Selection(
        fixable if options.fixable else None,
        _selectors("--extend-fixable", options.extend_fixable, plugins, spoken_of),
        _selectors("--unfixable", options.unfixable, plugins, spoken_of),
    )
    return Resolver(
        root,
        bounded=options.project_root is not None,
        config=file,
        isolated=options.isolated,
        layer=layer,
        selection=selection,
        fixable=fixes,
    )


def _torch(given: str | None) -> str | None:
    try:
        return None if given is None else readers.version(given)
    except ConfigError as error:
        raise click.UsageError(f"Invalid value for --target-torch: {error}") from None


def _patterns(option: str, values: Sequence[str]) -> tuple[str, ...] | None:
    """File patterns with commas between; None where there are none."""
    found = tuple(pattern for value in values for pattern in map(str.strip, value.split(",")) if pattern)
    try:
        for pattern in found:
            validate(pattern, None)
    except ConfigError as error:
        raise click.UsageError(f"Invalid value for {option}: {str(error).removeprefix('command line: ')}") from None
    return found or None


def _limits(given: Iterable[str]) -> Given:
    try:
        return tuple(limit for text in given for limit in limit_of(text))
    except ConfigError as error:
        raise click.UsageError(f"Invalid value for --limit: {error}") from None


def _is_file(value: str) -> bool:
    """Is a value of `--config` a file, and not `KEY = VALUE`?"""
    return Path(value).is_file() or ("=" not in value and value.endswith(".toml"))


def _config_file(values: Iterable[str]) -> Path | None:
    """The one file of `--config`."""
    files = [value for value in values if _is_file(value)]
    if len(files) > 1:
        raise click.UsageError(f"--config was given two files: {files[0]} and {files[1]}.")
    return Path(files[0]) if files else None


def _selectors(
    option: str, values: Sequence[str], plugins: tuple[str, ...], spoken_of: Callable[[], tuple[str, ...]]
) -> tuple[str, ...]:
    found = tuple(word for value in values for word in value.replace(",", " ").split())

    def check(plugins: tuple[str, ...]) -> None:
        rules = registry.known(plugins)
        for selector in found:
            expand(selector, rules)

    try:
        _either(check, plugins, spoken_of)
    except PluginError:
        raise
    except ConfigError as error:
        raise click.UsageError(f"Invalid value for {option}: {error}") from None
    return found


def _either(
    read: Callable[[tuple[str, ...]], T], plugins: tuple[str, ...], spoken_of: Callable[[], tuple[str, ...]]
) -> T:
    """What is read with the rules that the command line brings or, if need be, with those of the configuration, too."""
    try:
        return read(plugins)
    except PluginError:
        raise
    except ConfigError:
        more = spoken_of()
        if set(more) <= set(plugins):
            raise
        return read(more)


def _per_file_ignores(option: str, values: Sequence[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """`PATTERN:CODE` pairs with commas between; a code without a pattern belongs to the pattern before it."""
    table: dict[str, list[str]] = {}
    pattern: str | None = None
    for pair in (pair.strip() for value in values for pair in value.split(",")):
        head, colon, code = pair.rpartition(":")
        if colon:
            pattern = head.strip()
        if not pattern or not code.strip():
            raise click.UsageError(f"Invalid value for {option}: `{pair}` is not of the form PATTERN:CODE.")
        table.setdefault(pattern, []).append(code.strip())
    try:
        return readers.ignores_by_pattern(table)
    except ConfigError as error:
        raise click.UsageError(f"Invalid value for {option}: {error}") from None
