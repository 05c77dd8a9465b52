"""From the options of `check` to settings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from torchmemlint.config.errors import ConfigError
from torchmemlint.config.layers import Layer, override, read_inline
from torchmemlint.config.options import ignores_by_pattern
from torchmemlint.config.resolver import Resolver
from torchmemlint.config.selection import Selection, expand
from torchmemlint.config.settings import Settings
from torchmemlint.engine.cache.store import default_folder
from torchmemlint.findings import Severity


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


def resolver_for(options: ConfigurationOptions) -> Resolver:
    """The resolver of a run; raises click's usage errors, and `ConfigError` for a configuration file."""
    file, layer = _config_values(options.config)
    if options.isolated and file is not None:
        raise click.UsageError("--isolated and a configuration file given by --config contradict each other.")
    if options.fail_on is not None:
        layer = override(layer, Layer(fail_on=Severity(options.fail_on)))
    if options.per_file_ignores:
        layer = override(layer, Layer(per_file_ignores=_per_file_ignores(options.per_file_ignores)))
    select = _selectors("--select", options.select)
    selection = Selection(
        select if options.select else None,
        _selectors("--extend-select", options.extend_select),
        _selectors("--ignore", options.ignore),
    )
    root = (options.project_root or Path.cwd()).absolute()
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
        f"rules = {_list(sorted(settings.rules))}",
        f"per-file-ignores = {{{ignores}}}",
        f"severity = {{{severities}}}",
        f'fail-on = "{settings.fail_on.value}"',
        f"exclude = {_list(exclude)}",
        f"extend-exclude = {_list(settings.extend_exclude)}",
        f"respect-gitignore = {str(settings.respect_gitignore).lower()}",
        f'cache-dir = "{settings.cache_dir or default_folder()}"',
        f'measurements = "{settings.measurements_file}"',
        f'baseline = "{settings.baseline_file}"',
        f'target-torch = "{settings.target_torch}"' if settings.target_torch else "target-torch = the newest release",
        f"contracts = {_list(framework.name for framework in settings.contracts)}",
    ]


def _config_values(values: Iterable[str]) -> tuple[Path | None, Layer]:
    """The one file and the inline pairs of `--config`."""
    file: Path | None = None
    layer = Layer()
    for value in values:
        path = Path(value)
        if path.is_file() or ("=" not in value and value.endswith(".toml")):
            if file is not None:
                raise click.UsageError(f"--config was given two files: {file} and {value}.")
            file = path
        else:
            layer = override(layer, read_inline(value))
    return file, layer


def _selectors(option: str, values: Sequence[str]) -> tuple[str, ...]:
    found = tuple(word for value in values for word in value.replace(",", " ").split())
    try:
        for selector in found:
            expand(selector)
    except ConfigError as error:
        raise click.UsageError(f"Invalid value for {option}: {error}") from None
    return found


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
