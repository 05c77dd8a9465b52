"""`torchmemlint rule`: the pages of the rules."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import click

from torchmemlint.cli.terminal import wants_color


@click.command(short_help="Explain a rule.")
@click.argument("code", metavar="CODE", required=False)
@click.option("--all", "every", is_flag=True, help="Explain all rules.")
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", help="Text or JSON.")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", envvar="TORCHMEMLINT_COLOR")
def rule(code: str | None, every: bool, output_format: str, color: str) -> int:
    """Explain the rule with the given CODE or name: what it finds, why that costs memory, and what to do."""
    if every == (code is not None):
        raise click.UsageError("Give either a rule's code or name, or --all.")
    from torchmemlint.config.errors import ConfigError

    try:
        return _explain(code, every, output_format, color)
    except ConfigError as error:
        raise click.UsageError(str(error)) from None


def _explain(code: str | None, every: bool, output_format: str, color: str) -> int:
    from torchmemlint.rules import docs, registry
    from torchmemlint.rules.base import Rule

    chosen: list[Rule] = list(registry.known(_extended()).rules) if code is None else [find_rule(code)]
    if output_format == "json":
        objects = [_object(one) for one in chosen]
        click.echo(json.dumps(objects if every else objects[0], indent=2))
        return 0
    width = min(100, shutil.get_terminal_size().columns)
    colored = wants_color(color, sys.stdout)
    pages = [docs.to_terminal(docs.page(one), color=colored, width=width) for one in chosen]
    click.echo("\n".join(pages), nl=False, color=colored)
    return 0


def find_rule(word: str) -> Any:
    """The rule of a code or name. Raises a usage error, with the nearest one, where there is none."""
    from torchmemlint.config.errors import did_you_mean
    from torchmemlint.rules import registry

    found = registry.by_code().get(word.upper()) or registry.by_name().get(word.lower())
    if found is None:
        rules = registry.known(_extended())
        found = rules.by_code.get(word.upper()) or rules.by_name.get(word.lower())
        if found is None:
            hint = did_you_mean(word, [*rules.by_code, *rules.by_name])
            raise click.UsageError(f"Unknown rule `{word}`.{hint}")
    return found


def _extended() -> tuple[str, ...]:
    """What brings rules in the working directory."""
    from torchmemlint.config.resolver import Resolver

    return Resolver(Path.cwd()).settings_for(Path.cwd()).plugins


def _object(rule: Any) -> dict[str, object]:
    from torchmemlint.rules import docs

    return {
        "code": rule.code,
        "name": rule.name,
        "severity": rule.severity.value,
        "default": rule.on,
        "fix": rule.fix.value if rule.fix is not None else None,
        "why": rule.why,
        "explanation": docs.to_markdown(docs.page(rule)),
    }
