"""From the options of `check` to settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import click

from torchmemlint.config.errors import ConfigError
from torchmemlint.config.layers import Layer, override, read_inline
from torchmemlint.config.limits import Given, limit_of
from torchmemlint.config.options import ignores_by_pattern
from torchmemlint.config.presets import BY_NAME
from torchmemlint.config.resolver import Resolver
from torchmemlint.config.selection import Selection, expand
from torchmemlint.config.settings import Settings
from torchmemlint.doubts import Confidence
from torchmemlint.engine.cache.store import default_folder
from torchmemlint.findings import Severity
from torchmemlint.rules import registry
from torchmemlint.rules.extensions import PluginError, extension_of

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ConfigurationOptions:
    """The options of `check` that decide on settings, as given."""

    select: tuple[str, ...]
    extend_select: tuple[str, ...]
    ignore: tuple[str, ...]
    per_file_ignores: tuple[str, ...]
    fail_on: str | None
    config: tuple[str, ...]
    isolated: bool
    project_root: Path | None
    extend: tuple[str, ...] = ()
    preset: str | None = None
    limit: tuple[str, ...] = ()
    confidence: str | None = None


def resolver_for(options: ConfigurationOptions) -> Resolver:
    """The resolver of a run; raises click's usage errors, and `ConfigError` for a configuration file."""
    root = (options.project_root or Path.cwd()).absolute()
    extend = tuple(extension_of(word) for word in options.extend)
    file = _config_file(options.config)
    if options.isolated and file is not None:
        raise click.UsageError("--isolated and a configuration file given by --config contradict each other.")

    def spoken_of() -> tuple[str, ...]:
        """All that brings rules, by the command line or by the configuration that holds at the root."""
        bounded = options.project_root is not None
        there = Resolver(root, bounded=bounded, config=file, isolated=options.isolated, layer=Layer(extend=extend))
        return there.settings_for(root).extend

    layer = Layer(extend=extend)
    for text in options.config:
        if not _is_file(text):
            layer = override(layer, _either(partial(read_inline, text), extend, spoken_of))
            extend = layer.extend or ()
    if options.preset is not None:
        layer = override(layer, Layer(preset=options.preset, fail_on=BY_NAME[options.preset].fail_on))
    if options.fail_on is not None:
        layer = override(layer, Layer(fail_on=Severity(options.fail_on)))
    if options.confidence is not None:
        layer = override(layer, Layer(confidence=Confidence(options.confidence)))
    if options.limit:
        layer = override(layer, Layer(limits=_limits(options.limit)))
    if options.per_file_ignores:
        table = _per_file_ignores(options.per_file_ignores)
        for _, selectors in table:
            _selectors("--per-file-ignores", selectors, extend, spoken_of)
        layer = override(layer, Layer(per_file_ignores=table))
    select = _selectors("--select", options.select, extend, spoken_of)
    selection = Selection(
        select if options.select else None,
        _selectors("--extend-select", options.extend_select, extend, spoken_of),
        _selectors("--ignore", options.ignore, extend, spoken_of),
        options.preset,
    )
    return Resolver(
        root,
        bounded=options.project_root is not None,
        config=file,
        isolated=options.isolated,
        layer=layer,
        selection=selection,
    )


def settings_lines(settings: Settings) -> list[str]:
    """The settings for `--show-settings`."""
    from torchmemlint.config.settings import DEFAULT_EXCLUDED_NAMES

    exclude = sorted(DEFAULT_EXCLUDED_NAMES) if settings.exclude is None else settings.exclude
    ignores = ", ".join(f'"{pattern}" = {_list(sorted(codes))}' for pattern, codes in settings.per_file_ignores)
    severities = ", ".join(f'{code} = "{severity.value}"' for code, severity in settings.severities)
    return [
        f'configuration = "{settings.source}"' if settings.source else "configuration = none found",
        f'project-root = "{settings.root}"',
        f'preset = "{settings.preset}"',
        f"rules = {_list(sorted(settings.rules))}",
        f"per-file-ignores = {{{ignores}}}",
        f"severity = {{{severities}}}",
        f'fail-on = "{settings.fail_on.value}"',
        f'confidence = "{settings.confidence.value}"',
        f"exclude = {_list(exclude)}",
        f"extend-exclude = {_list(settings.extend_exclude)}",
        f"respect-gitignore = {str(settings.respect_gitignore).lower()}",
        f'cache-dir = "{settings.cache_dir or default_folder()}"',
        f'measurements = "{settings.measurements_file}"',
        f'baseline = "{settings.baseline_file}"',
        f'target-torch = "{settings.target_torch}"' if settings.target_torch else "target-torch = the newest release",
        f"limits = {{{', '.join(f'{name} = {value:g}' for name, value in asdict(settings.limits).items())}}}",
        f"extend = {_list(settings.extend)}",
        f"contracts = {_list(framework.name for framework in settings.contracts)}",
    ]


def settings_table(settings: Settings) -> dict[str, object]:
    """The settings by the keys of the options, as one could write them; None where there is no way to write it."""
    from torchmemlint.config.settings import DEFAULT_EXCLUDED_NAMES

    return {
        "select": sorted(settings.rules),
        "per-file-ignores": {pattern: sorted(codes) for pattern, codes in settings.per_file_ignores},
        "severity": {code: severity.value for code, severity in settings.severities},
        "extend": list(settings.extend),
        "fail-on": settings.fail_on.value,
        "confidence": settings.confidence.value,
        "exclude": sorted(DEFAULT_EXCLUDED_NAMES) if settings.exclude is None else list(settings.exclude),
        "extend-exclude": list(settings.extend_exclude),
        "respect-gitignore": settings.respect_gitignore,
        "cache-dir": str(settings.cache_dir or default_folder()),
        "measurements": str(settings.measurements_file),
        "baseline": str(settings.baseline_file),
        "target-torch": settings.target_torch,
        "limits": asdict(settings.limits),
        "contracts": None if settings.contracts else {},
    }


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
    option: str, values: Sequence[str], extend: tuple[str, ...], spoken_of: Callable[[], tuple[str, ...]]
) -> tuple[str, ...]:
    found = tuple(word for value in values for word in value.replace(",", " ").split())

    def check(extend: tuple[str, ...]) -> None:
        rules = registry.known(extend)
        for selector in found:
            expand(selector, rules)

    try:
        _either(check, extend, spoken_of)
    except PluginError:
        raise
    except ConfigError as error:
        raise click.UsageError(f"Invalid value for {option}: {error}") from None
    return found


def _either(
    read: Callable[[tuple[str, ...]], T], extend: tuple[str, ...], spoken_of: Callable[[], tuple[str, ...]]
) -> T:
    """What is read with the rules that the command line brings or, if need be, with those of the configuration, too."""
    try:
        return read(extend)
    except PluginError:
        raise
    except ConfigError:
        more = spoken_of()
        if set(more) <= set(extend):
            raise
        return read(more)


def _per_file_ignores(values: Sequence[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """`PATTERN:CODE` pairs with commas between; a code without a pattern belongs to the pattern before it."""
    table: dict[str, list[str]] = {}
    pattern: str | None = None
    for pair in (pair.strip() for value in values for pair in value.split(",")):
        head, colon, code = pair.rpartition(":")
        if colon:
            pattern = head.strip()
        if not pattern or not code.strip():
            raise click.UsageError(f"Invalid value for --per-file-ignores: `{pair}` is not of the form PATTERN:CODE.")
        table.setdefault(pattern, []).append(code.strip())
    try:
        return ignores_by_pattern(table)
    except ConfigError as error:
        raise click.UsageError(f"Invalid value for --per-file-ignores: {error}") from None


def _list(values: Iterable[str]) -> str:
    return "[" + ", ".join(f'"{value}"' for value in values) + "]"
