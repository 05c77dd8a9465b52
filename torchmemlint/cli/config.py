"""`torchmemlint config`: the configuration options."""

from __future__ import annotations

import json
import textwrap

import click


@click.command(short_help="Explain the configuration options.")
@click.argument("key", metavar="KEY", required=False)
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", help="Text or JSON.")
def config(key: str | None, output_format: str) -> int:
    """List the options of `[tool.torchmemlint]`, or explain the one with the given KEY."""
    from torchmemlint.config.errors import did_you_mean
    from torchmemlint.config.options import OPTIONS

    known = {option.key: option for option in OPTIONS}
    if key is not None and key not in known:
        raise click.UsageError(f"Unknown configuration key `{key}`.{did_you_mean(key, known)}")
    chosen = OPTIONS if key is None else (known[key],)
    if output_format == "json":
        fields = ("type", "default", "doc", "example")
        table = {option.key: {name: getattr(option, name) for name in fields} for option in chosen}
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
