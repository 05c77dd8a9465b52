"""`torchmemlint rule`: the pages of the rules."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from torchmemlint.cli.terminal import wants_color

if TYPE_CHECKING:
    from torchmemlint.rules.base import Rule
    from torchmemlint.rules.families import Family
    from torchmemlint.rules.registry import RuleSet


@click.command(short_help="Explain a rule, or a family of rules.")
@click.argument("code", metavar="CODE", required=False)
@click.option("--all", "every", is_flag=True, help="Explain all rules.")
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", help="Text or JSON.")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", envvar="TORCHMEMLINT_COLOR")
def rule(code: str | None, every: bool, output_format: str, color: str) -> int:
    """Explain the rule with this CODE or name: what it finds, why, and what to do.

    For a family (TML1), say what it is about, and what each of its rules finds.
    """
    if every == (code is not None):
        raise click.UsageError("Give either a rule's code or name, or --all.")
    from torchmemlint.config.errors import ConfigError

    try:
        return _explain(code, every, output_format, color)
    except ConfigError as error:
        raise click.UsageError(str(error)) from None


def _explain(code: str | None, every: bool, output_format: str, color: str) -> int:
    from torchmemlint.rules import docs
    from torchmemlint.rules.families import FAMILIES

    family = next((one for one in FAMILIES if code is not None and one.prefix == code.upper()), None)
    chosen: list[Rule]
    if family is not None:
        chosen = [one for one in known_rules().rules if one.code[:-2] == family.prefix]
    else:
        chosen = list(known_rules().rules) if code is None else [find_rule(code)]
    if output_format == "json":
        objects = [_object(one) for one in chosen]
        click.echo(json.dumps(objects if every or family is not None else objects[0], indent=2))
        return 0
    width = min(100, shutil.get_terminal_size().columns)
    colored = wants_color(color, sys.stdout)
    texts = [docs.to_markdown(docs.page(one)) for one in chosen] if family is None else [_family_page(family, chosen)]
    click.echo("\n".join(docs.shown(text, color=colored, width=width) for text in texts), nl=False, color=colored)
    return 0


def _family_page(family: Family, rules: list[Rule]) -> str:
    """What a family is about, as Markdown, with the first words of each page."""
    from torchmemlint.rules import docs

    lines = [f"# {family.title} ({family.prefix})", "", family.about, ""]
    for one in rules:
        facts = f"{one.severity.value}, {docs.status(one)}{'' if one.on else ', off by default'}"
        lines.append(f"- **{one.code} {one.name}** ({facts}): {docs.summary(one)}")
    return "\n".join((*lines, "", f"`torchmemlint rule {rules[0].code}` explains one of them.", ""))


def find_rule(word: str) -> Any:
    """The rule of a code or name. Raises a usage error, with the nearest one, where there is none."""
    from torchmemlint.config.errors import did_you_mean
    from torchmemlint.rules import registry

    found = registry.by_code().get(word.upper()) or registry.by_name().get(word.lower())
    if found is None:
        rules = known_rules()
        found = rules.by_code.get(word.upper()) or rules.by_name.get(word.lower())
        if found is None:
            hint = did_you_mean(word, [*rules.by_code, *rules.by_name])
            raise click.UsageError(f"Unknown rule `{word}`.{hint}")
    return found


def known_rules() -> RuleSet:
    """The rules that may be spoken of in the working directory. Raises a usage error for its configuration."""
    from torchmemlint.config.errors import ConfigError
    from torchmemlint.config.resolver import Resolver
    from torchmemlint.rules import registry

    try:
        return registry.known(Resolver(Path.cwd()).settings_for(Path.cwd()).plugins)
    except ConfigError as error:
        raise click.UsageError(str(error)) from None


def _object(rule: Rule) -> dict[str, object]:
    from torchmemlint.cli.rules import rule_object
    from torchmemlint.rules import docs

    return {**rule_object(rule), "explanation": docs.to_markdown(docs.page(rule))}
