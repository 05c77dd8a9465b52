"""`torchmemlint config`: the configuration options, and what is said by configuration files."""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Iterator
from pathlib import Path

import click

from torchmemlint.cli.terminal import complain


class ConfigGroup(click.Group):
    """A group whose arguments belong to `explain` where they do not begin with a command's name."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the default command in front of arguments that name none."""
        own = {name for parameter in self.get_params(ctx) for name in parameter.opts}
        if not args or (args[0] not in self.commands and args[0] not in own):
            args = ["explain", *args]
        return super().parse_args(ctx, args)


@click.group(
    cls=ConfigGroup,
    short_help="Explain, check and show the configuration.",
    epilog="Without a command, `explain` is meant: `torchmemlint config select`.",
)
def config() -> None:
    """Explain the options, check configuration files, show the settings, or print the schema."""


@config.command(short_help="Explain the configuration options (the default).")
@click.argument("key", metavar="KEY", required=False)
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", help="Text or JSON.")
def explain(key: str | None, output_format: str) -> int:
    """List the options of `[tool.torchmemlint]`, or explain the one with the given KEY."""
    from torchmemlint.config.errors import did_you_mean
    from torchmemlint.config.options import OPTIONS

    known = {option.key: option for option in OPTIONS}
    if key is not None and key not in known:
        raise click.UsageError(f"Unknown configuration key `{key}`.{did_you_mean(key, [*known, *config.commands])}")
    chosen = OPTIONS if key is None else (known[key],)
    if output_format == "json":
        names = ("type", "default", "doc", "example")
        table = {option.key: {name: getattr(option, name) for name in names} for option in chosen}
        click.echo(json.dumps(table, indent=2))
        return 0
    for number, option in enumerate(chosen):
        if number:
            click.echo()
        click.echo(option.key)
        for line in (*textwrap.wrap(option.doc, 96), f"Type: {option.type}", f"Default: {option.default}"):
            click.echo(f"    {line}")
        if key is not None:
            click.echo("    Example:")
            click.echo(textwrap.indent(option.example, "        "))
    return 0


@config.command(short_help="List everything that is wrong with configuration files.")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, exists=True, dir_okay=False))
def check(files: tuple[Path, ...]) -> int:
    """Check configuration FILES (default: the one of the working directory).

    The exit code is 0 if nothing is wrong, 1 if something is, and 2 for an error.
    """
    from torchmemlint.config.inspecting import Problem, problems_of
    from torchmemlint.rules.extensions import PluginError

    problems: list[Problem] = []
    try:
        for file in files or _nearest(Path.cwd()):
            problems += problems_of(file)
    except PluginError as error:
        raise click.UsageError(str(error)) from None
    for problem in problems:
        click.echo(str(problem))
    if not problems:
        complain("notice", "nothing is wrong with the configuration")
    return int(bool(problems))


def _nearest(directory: Path) -> Iterator[Path]:
    """The file that counts, if there is one, named as from here."""
    from torchmemlint.config.inspecting import nearest_file
    from torchmemlint.report.places import shown_path

    found = nearest_file(directory)
    if found is None:
        complain("notice", f"there is no configuration file in {directory} or above")
    else:
        yield Path(shown_path(found, directory))


@config.command(short_help="Show the settings for a file, and where each comes from.")
@click.argument("path", default=".", type=click.Path(path_type=Path, exists=True))
@click.option("--config", "configs", multiple=True, metavar="FILE|KEY=VALUE", help="As for `check`.")
@click.option("--isolated", is_flag=True, help="Ignore all configuration files.")
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", help="Text or JSON.")
def show(path: Path, configs: tuple[str, ...], isolated: bool, output_format: str) -> int:
    """Show the settings for PATH, a file or folder, and where each comes from.

    The output is a configuration that means the same.
    """
    from torchmemlint.cli.configuration import ConfigurationOptions, resolver_for
    from torchmemlint.cli.settings import settings_table
    from torchmemlint.config.errors import ConfigError
    from torchmemlint.config.inspecting import origins
    from torchmemlint.report.places import shown_path

    options = ConfigurationOptions(config=configs, isolated=isolated)
    try:
        resolver = resolver_for(options)
        place = path.absolute()
        settings = resolver.settings_for(place if place.is_dir() else place.parent)
        where = origins(settings, resolver.given, lambda file: shown_path(file, Path.cwd()))
    except ConfigError as error:
        raise click.UsageError(str(error)) from None
    table = settings_table(settings)
    if output_format == "json":
        rows = {key: {"value": value, "from": where[key]} for key, value in table.items()}
        about = {"configuration": str(settings.source) if settings.source else None, "root": str(settings.root)}
        click.echo(json.dumps({**about, "settings": rows}, indent=2))
        return 0
    click.echo(f"# configuration: {settings.source or 'none found'}")
    click.echo(f"# patterns are relative to: {settings.root}")
    for name in sorted(name for name in os.environ if name.startswith("TORCHMEMLINT_")):
        click.echo(f"# `check` also reads from the environment: {name}={os.environ[name]}")
    for key, value in table.items():
        click.echo(f"\n# {where[key]}")
        click.echo(f"{key} = {_toml(value)}" if value is not None else f"# {key}: {_in_words(key)}")
    return 0


def _in_words(key: str) -> str:
    return "the newest release" if key == "target-torch" else "see the configuration"


def _toml(value: object) -> str:
    """A value as TOML; a list that is long, over several lines."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        items = [f"{_toml(item)}," for item in value]
        if sum(map(len, items)) < 90:
            return f"[{' '.join(items)[:-1]}]"
        rows = [""]
        for item in items:
            if len(rows[-1]) + len(item) > 100:
                rows.append("")
            rows[-1] += f" {item}"
        return "[\n" + "".join(f"   {row}\n" for row in rows) + "]"
    return json.dumps(value, ensure_ascii=False)


@config.command(short_help="Print the JSON Schema of the settings.")
@click.option("--pyproject", is_flag=True, help="Print the schema of a whole pyproject.toml.")
def schema(pyproject: bool) -> int:
    """Print the JSON Schema of `torchmemlint.toml`, with the rules of installed plugins.

    Editors with taplo read it from a first line `#:schema FILE` in the configuration.
    """
    from torchmemlint.config.errors import ConfigError
    from torchmemlint.config.schema import pyproject_schema, settings_schema
    from torchmemlint.rules import registry

    try:
        made = (pyproject_schema if pyproject else settings_schema)(registry.known())
    except ConfigError as error:
        raise click.UsageError(str(error)) from None
    click.echo(json.dumps(made, indent=2))
    return 0
