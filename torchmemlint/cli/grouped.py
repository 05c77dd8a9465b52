"""Options in groups, each under a heading of its own in `--help`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from torchmemlint.immutable import immutable

_OTHERS = "Options"


@immutable()
class Group:
    """Options that belong together, in the order of `--help`."""

    title: str
    options: tuple[Callable[[Any], Any], ...]  # what `click.option` gives


class GroupedCommand(click.Command):
    """A command with groups of options, besides those that its function is decorated with."""

    def __init__(self, *arguments: Any, groups: Sequence[Group] = (), **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._titles: dict[str | None, str] = {}
        for group in groups:
            for option in group.options:
                parameter = _made_by(option)
                self.params.append(parameter)
                self._titles[parameter.name] = group.title

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of each group under its title, and the others at the end."""
        records: dict[str, list[tuple[str, str]]] = {title: [] for title in (*self._titles.values(), _OTHERS)}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record is not None:
                records[self._titles.get(parameter.name, _OTHERS)].append(record)
        for title, rows in records.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def _made_by(option: Callable[[Any], Any]) -> click.Parameter:
    """The parameter that a decorator of click adds to a function."""

    def function() -> None: ...

    option(function)
    found: click.Parameter = function.__click_params__[0]  # type: ignore[attr-defined]
    return found
