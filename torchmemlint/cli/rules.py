"""`torchmemlint rules`: the catalogue."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from torchmemlint.cli.terminal import wants_color

if TYPE_CHECKING:
    from torchmemlint.rules.base import Rule


@click.command(short_help="List the rules.")
@click.argument("selectors", nargs=-1, metavar="[RULE_SELECTOR]...")
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", help="Text or JSON.")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", envvar="TORCHMEMLINT_COLOR")
def rules(selectors: tuple[str, ...], output_format: str, color: str) -> int:
    """List the rules of RULE_SELECTORs: codes, prefixes, names (default: ALL). Rules of plugins are included.

    Each has its severity, its fix, its stage, and whether it is on by default.
    """
    from torchmemlint.cli.rule import known_rules
    from torchmemlint.config.errors import ConfigError
    from torchmemlint.config.selection import expand

    known = known_rules()
    try:
        codes = frozenset().union(*(expand(selector, known) for selector in selectors or ("ALL",)))
    except ConfigError as error:
        raise click.UsageError(str(error)) from None
    chosen = [rule for rule in known.rules if rule.code in codes]
    if output_format == "json":
        click.echo(json.dumps([rule_object(rule) for rule in chosen], indent=2))
    else:
        click.echo("\n".join(table(chosen, color=wants_color(color, sys.stdout))))
    return 0


def table(chosen: Sequence[Rule], *, color: bool) -> list[str]:
    """A line for each rule, under the title of its family."""
    from torchmemlint.findings import Applicability
    from torchmemlint.report.paint import Paint
    from torchmemlint.rules.families import FAMILIES

    paint = Paint(color)
    titles = {family.prefix: f"{family.title} ({family.prefix})" for family in FAMILIES}
    width = max(len(rule.name) for rule in chosen)
    lines: list[str] = []
    title = ""
    for rule in chosen:
        family = titles.get(rule.code[:-2], f"Rules of plugins ({rule.code.rstrip('0123456789')})")
        if family != title:
            lines += [*([""] if title else []), paint.strong(family)]
            title = family
        fix = "" if rule.fix is None else "hint" if rule.fix is Applicability.HINT else f"{rule.fix.value} fix"
        facts = [part for part in ("" if rule.on else "off", fix, _stage(rule)) if part]
        severity = rule.severity.value
        severity = paint.severity(rule.severity, severity) + " " * (len("warning") - len(severity))
        lines.append(f"  {rule.code}  {rule.name:{width}}  {severity}  {paint.faint(', '.join(facts))}".rstrip())
    return lines


def _stage(rule: Rule) -> str:
    from torchmemlint.rules.base import Stage

    return "" if rule.stage is Stage.STABLE else rule.stage.value


def rule_object(rule: Rule) -> dict[str, Any]:
    """What a rule is, as JSON's types."""
    from torchmemlint.report.message import rule_url

    return {
        "code": rule.code,
        "name": rule.name,
        "severity": rule.severity.value,
        "default": rule.on,
        "fix": rule.fix.value if rule.fix is not None else None,
        "status": rule.stage.value,
        "since": rule.version or None,
        "why": rule.why,
        "url": rule_url(rule.code),
    }
