"""`torchmemlint census`: what is found in a corpus, counted."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from torchmemlint.cli.confidence import confidence_option
from torchmemlint.cli.corpora import opened_corpus, projects_option
from torchmemlint.cli.executors import executor_option, opened
from torchmemlint.cli.outputs import write
from torchmemlint.cli.terminal import complain, is_terminal, wants_color

if TYPE_CHECKING:
    from torchmemlint.census.counting import Census
    from torchmemlint.census.labels import Precision
    from torchmemlint.config.resolver import Resolver
    from torchmemlint.engine.runner import Request

_FILE = click.Path(path_type=Path, dir_okay=False)
_SELECTOR = "RULE_SELECTOR"


@click.command(short_help="Count the findings in many projects.")
@click.argument("reports", nargs=-1, type=_FILE)
@projects_option
@click.option("--select", multiple=True, metavar=_SELECTOR, help="Rules to check instead of the configured ones.")
@click.option("--extend-select", multiple=True, metavar=_SELECTOR, help="Rules to check besides the selected ones.")
@click.option("--ignore", multiple=True, metavar=_SELECTOR, help="Rules not to check.")
@confidence_option
@click.option("--isolated", is_flag=True, help="Ignore all configuration files.")
@click.option("--config", multiple=True, metavar="FILE|KEY=VALUE", help="A configuration file, or one setting as TOML.")
@click.option("--jobs", "-j", type=click.IntRange(min=1), help="Use at most this many processes.")
@executor_option
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--output-file", "-o", type=_FILE, help="Write the census to a file.")
@click.option("--html", type=_FILE, help="Also write an HTML page.")
@click.option(
    "--sample", type=click.IntRange(min=1), metavar="N", help="Draw N findings of each rule, to read them by hand."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the draw.")
@click.option(
    "--labels",
    multiple=True,
    type=_FILE,
    metavar="FILE",
    help="With --sample: write the draw here. Without: count what was read, and give the precision of rules.",
)
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="Use colours.")
@click.option("--quiet", "-q", is_flag=True, help="Show no progress.")
def census(reports: tuple[Path, ...], **options: Any) -> int:
    """Count the findings in a list of projects, or in REPORTS of earlier runs.

    REPORTS are the JSON of `check` or `census`.

    The exit code is 0, or 2 if an option, a report or a project is wrong.
    """
    from torchmemlint.census.labels import LabelsError, read_labels
    from torchmemlint.census.saved import ReportError
    from torchmemlint.config.errors import ConfigError

    _refuse(reports, options)
    try:
        precision = {} if options["sample"] else {one.code: one for one in read_labels(options["labels"])}
        found = _of_reports(reports) if reports else _of_projects(options)
    except (LabelsError, ReportError, ConfigError) as error:
        raise click.UsageError(str(error)) from None
    if options["sample"]:
        _draw(found, options)
    _show(found, precision, options)
    for problem in found.errors:
        complain("error", problem)
    return 2 if found.errors else 0


def _refuse(reports: tuple[Path, ...], options: dict[str, Any]) -> None:
    if bool(reports) is (options["projects_from"] is not None):
        raise click.UsageError("Give either REPORTS or --projects-from FILE.")
    if options["sample"] and len(options["labels"]) != 1:
        raise click.UsageError("--sample needs one --labels FILE, to which the draw is written.")
    if options["sample"] and options["labels"][0].exists():
        raise click.UsageError(f"{options['labels'][0]} is there already, perhaps with labels: name another file.")
    if options["html"] is not None:
        from importlib.util import find_spec

        if find_spec("jinja2") is None:
            raise click.UsageError("--html needs jinja2: pip install 'torchmemlint[html]'.")


def _of_reports(reports: tuple[Path, ...]) -> Census:
    from torchmemlint.census.saved import read_reports

    return read_reports(reports)


def _of_projects(options: dict[str, Any]) -> Census:
    from torchmemlint.census.taking import Taking
    from torchmemlint.cli.configuration import ConfigurationOptions, resolver_for
    from torchmemlint.engine.runner import Request

    names = ("select", "extend_select", "ignore", "config", "isolated", "confidence")
    given = {name: options[name] for name in names}
    configuration = ConfigurationOptions(**given)
    resolver_for(configuration)  # says at once what is wrong with the options
    taking = Taking()
    with opened(options, ()) as executor:

        def request_for(resolver: Resolver, files: tuple[Path, ...]) -> Request:
            return Request(files, resolver, jobs=options["jobs"], executor=executor, use_cache=True, apart=True)

        with opened_corpus(
            options["projects_from"],
            configuration,
            request_for,
            quiet=options["quiet"],
            executor=executor,
            seen=taking.seen,
        ) as corpus:
            return taking.census(corpus)


def _draw(found: Census, options: dict[str, Any]) -> None:
    from torchmemlint.census.labels import lines, sample

    text = "".join(
        f"{line}\n" for line in lines(sample(found.found, options["sample"], options["seed"]), options["seed"])
    )
    write(options["labels"][0], text)


def _show(found: Census, precision: dict[str, Precision], options: dict[str, Any]) -> None:
    if options["html"] is not None:
        from torchmemlint.census.page import page

        write(options["html"], page(found, precision))
    file: Path | None = options["output_file"]
    if options["output_format"] == "json":
        told = found.to_json()
        if precision:
            told["precision"] = [one.to_json() for one in precision.values()]
        text = json.dumps(told, indent=2) + "\n"
    else:
        text = _table(found, precision, options, file)
    if file is None:
        sys.stdout.write(text)
    else:
        write(file, text)


def _table(found: Census, precision: dict[str, Precision], options: dict[str, Any], file: Path | None) -> str:
    import io

    from rich.console import Console

    from torchmemlint.census.table import table

    color = wants_color(options["color"], sys.stdout) if file is None else options["color"] == "always"
    width = None if file is None and is_terminal(sys.stdout) else 160
    stream = io.StringIO()
    Console(file=stream, width=width, force_terminal=color, no_color=not color, highlight=False).print(
        table(found, precision)
    )
    return stream.getvalue()
