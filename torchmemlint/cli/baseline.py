"""`torchmemlint baseline`: the findings that a project knows of and lives with."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from torchmemlint.cli.confidence import confidence_option
from torchmemlint.cli.terminal import complain

if TYPE_CHECKING:
    from torchmemlint.baseline import Baseline, Entry
    from torchmemlint.config.resolver import Resolver
    from torchmemlint.engine.run import RunReport
    from torchmemlint.findings import Finding

_FILE = click.option(
    "--baseline",
    "file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The baseline file.  [default: the configured one, or torchmemlint-baseline.json beside the configuration]",
)


def _about_the_run(command: Callable[..., int]) -> Callable[..., int]:
    """The options by which a baseline is made of the findings that `check` would report."""
    for option in (
        click.option("--jobs", "-j", type=click.IntRange(min=1), help="Use at most this many processes."),
        click.option("--isolated", is_flag=True, help="Ignore all configuration files."),
        click.option("--config", multiple=True, metavar="FILE|KEY=VALUE", help="A configuration file, or one setting."),
        confidence_option,
        click.option("--ignore", multiple=True, metavar="RULE_SELECTOR", help="Rules not to check."),
        click.option(
            "--extend-select", multiple=True, metavar="RULE_SELECTOR", help="Rules to check besides the selected ones."
        ),
        click.option(
            "--select", multiple=True, metavar="RULE_SELECTOR", help="Rules to check instead of the configured ones."
        ),
        _FILE,
        click.argument("paths", nargs=-1, metavar="[PATHS]..."),
    ):
        command = option(command)
    return command


@click.group(short_help="Keep the findings of old code apart from new ones.")
def baseline() -> None:
    """Keep the findings of old code in a file: then `check` reports only new ones.

    Commit the file. It knows findings by their code, not by their line numbers.
    """


@baseline.command(short_help="Write all findings of today into a baseline.")
@_about_the_run
@click.option("--force", is_flag=True, help="Replace a baseline that exists.")
def create(paths: tuple[str, ...], file: Path | None, force: bool, **options: Any) -> int:
    """Write what `check` finds in PATHS (default: the working directory) into baselines.

    Each configuration has its own baseline. --baseline FILE puts everything into one file.
    """
    resolver = _resolver(options)
    return _guarded(lambda: _create(paths, file, resolver, options, force=force))


@baseline.command(short_help="Drop what was fixed, and update the places of the rest.")
@_about_the_run
def update(paths: tuple[str, ...], file: Path | None, **options: Any) -> int:
    """Update the baselines of PATHS (default: the working directory), or the one of --baseline FILE.

    Entries that no longer occur are dropped. The others get today's names, places and measured bytes. New findings
    are not added: fix them, ignore them with a comment, or add them with `create --force`.
    """
    resolver = _resolver(options)
    return _guarded(lambda: _update(paths, file, resolver, options))


@baseline.command(short_help="List the findings of a baseline, the most costly first.")
@_FILE
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", help="Text or JSON.")
@click.option("--statistics", is_flag=True, help="Show a count for each rule instead.")
def show(file: Path | None, output_format: str, statistics: bool) -> int:
    """List the findings of a baseline and their measured cost, the most costly first."""
    resolver = _resolver({})
    return _guarded(lambda: _show(_target(file, resolver), resolver, output_format, statistics=statistics))


# ---------------------------------------------------------------------------------------------------------------------


def _guarded(job: Callable[[], int]) -> int:
    from torchmemlint.config.errors import ConfigError

    try:
        return job()
    except ConfigError as error:
        raise click.UsageError(str(error)) from None


def _resolver(options: dict[str, Any]) -> Resolver:
    from torchmemlint.cli.configuration import ConfigurationOptions, resolver_for
    from torchmemlint.config.errors import ConfigError

    chosen = {name: options.get(name, ()) for name in ("select", "extend_select", "ignore", "config")}
    try:
        return resolver_for(
            ConfigurationOptions(
                **chosen,
                isolated=options.get("isolated", False),
                confidence=options.get("confidence"),
            )
        )
    except ConfigError as error:
        raise click.UsageError(str(error)) from None


def _target(file: Path | None, resolver: Resolver) -> Path:
    from torchmemlint.config.errors import ConfigError

    try:
        return file or resolver.settings_for(resolver.root).baseline_file
    except ConfigError as error:
        raise click.UsageError(str(error)) from None


def _find(paths: tuple[str, ...], resolver: Resolver) -> tuple[Path, ...]:
    from torchmemlint.cli.files import find_files

    return find_files(paths or (".",), resolver)


def _targets(files: tuple[Path, ...], given: Path | None, resolver: Resolver) -> list[Path]:
    """The baselines of some files: the given one, or that of each configuration, the working directory's first."""
    if given is not None:
        return [given]
    folders = dict.fromkeys((resolver.root, *sorted(file.parent for file in files)))
    return list(dict.fromkeys(resolver.settings_for(folder).baseline_file for folder in folders))


def _run(files: tuple[Path, ...], resolver: Resolver, options: dict[str, Any]) -> RunReport:
    from torchmemlint.cli.progress import ProgressBar
    from torchmemlint.cli.terminal import is_terminal
    from torchmemlint.engine.runner import Request, run

    with ProgressBar(len(files), enabled=is_terminal(sys.stderr)) as progress:
        report = run(Request(files, resolver, jobs=options["jobs"]), progress)
    for notice in report.notices:
        complain("warning", notice)
    for error in report.errors:
        complain("error", error)
    return report


def _create(
    paths: tuple[str, ...], given: Path | None, resolver: Resolver, options: dict[str, Any], *, force: bool
) -> int:
    from torchmemlint.baseline import Baseline, write_baseline
    from torchmemlint.engine.sieve import scopes_of

    files = _find(paths, resolver)
    targets = _targets(files, given, resolver)
    if not force and (there := next((target for target in targets if target.exists()), None)) is not None:
        raise click.UsageError(
            f"{there}: there is a baseline already. `torchmemlint baseline update` drops what was mended; "
            "--force writes it anew, with all that is found now."
        )
    report = _run(files, resolver, options)
    if report.errors:  # a baseline without what these files have would bring it back as new
        complain("error", f"{targets[0]} was not written")
        return 2
    found: dict[Path, list[Finding]] = {
        target: [] for number, target in enumerate(targets) if not number or target.exists()
    }
    for finding in report.findings:
        target = given or resolver.settings_for(finding.filename.parent).baseline_file
        found.setdefault(target, []).append(finding)
    if not found[targets[0]] and len(found) > 1 and not targets[0].exists():
        del found[targets[0]]  # all that is found belongs to others
    scope_of = scopes_of(report.programs)
    for target, findings in found.items():
        empty = Baseline(target)
        entries = tuple(empty.entry(finding, scope_of(finding)) for finding in findings)
        write_baseline(replace(empty, entries=entries))
        count = len({entry.path for entry in entries})
        click.echo(f"Wrote {_count(len(entries), 'finding')} in {_count(count, 'file')} to {_shown(target, resolver)}.")
    return 0


def _update(paths: tuple[str, ...], given: Path | None, resolver: Resolver, options: dict[str, Any]) -> int:
    from torchmemlint.baseline import refreshed, write_baseline
    from torchmemlint.engine.sieve import Baselines, scopes_of

    files = _find(paths, resolver)
    targets = _targets(files, given, resolver)
    there = [target for target in targets if target.exists()] or [_read(targets[0]).file]
    baselines = Baselines(resolver, given)
    baselines.read(files)  # says what is wrong with one before the run
    report = _run(files, resolver, options)
    if report.errors:
        complain("error", f"{there[0]} was not written")
        return 2
    scope_of = scopes_of(report.programs)
    compared = baselines.compare(report.findings, (*files, *(target.absolute() for target in there)), report.programs)
    new = len(report.findings)
    for old, sifted in compared:
        gone = {id(entry) for entry in sifted.gone}
        now = {id(entry): finding for finding, entry in sifted.known}
        entries = tuple(
            refreshed(entry, old.entry(now[id(entry)], scope_of(now[id(entry)]))) if id(entry) in now else entry
            for entry in old.entries
            if id(entry) not in gone
        )
        write_baseline(replace(old, entries=entries))
        new -= len(sifted.known)
        occur, are = "occurs" if len(gone) == 1 else "occur", "is" if len(entries) == 1 else "are"
        where = f" in {_shown(old.file, resolver)}" if len(compared) > 1 else ""
        click.echo(f"Dropped {_count(len(gone), 'finding')} that no longer {occur}; {len(entries)} {are} left{where}.")
    if new:
        click.echo(f"{_count(new, 'new finding')} not taken in: `torchmemlint check` shows what is new.")
    return 0


def _read(target: Path) -> Baseline:
    from torchmemlint.baseline import BaselineError, read_baseline

    found = read_baseline(target)
    if found is None:
        raise BaselineError(f"{target}: no such baseline; write it with `torchmemlint baseline create`")
    return found


def _show(target: Path, resolver: Resolver, output_format: str, *, statistics: bool) -> int:
    from torchmemlint.baseline import by_cost

    found = _read(target)
    entries = by_cost(_with_figures(found, resolver))
    if statistics:
        _show_statistics(entries, output_format)
    elif output_format == "json":
        import json

        click.echo(json.dumps([entry.to_json() for entry in entries], indent=2))
    else:
        for entry in entries:
            told = f" (measured: {entry.measured.sentence})" if entry.measured is not None else ""
            place = f"{entry.path} in {entry.scope}" if entry.scope else entry.path
            click.echo(f"{place}: {entry.rule} {entry.message}{told}")
        files = len({entry.path for entry in entries})
        click.echo(f"{_count(len(entries), 'finding')} in {_count(files, 'file')}.")
    return 0


def _with_figures(found: Baseline, resolver: Resolver) -> list[Entry]:
    """The entries, with the figures that were recorded since the baseline was written."""
    from torchmemlint.measured import MeasurementsError, read_measurements

    folder = found.file.absolute().parent
    entries = []
    files: dict[Path, Any] = {}
    for entry in found.entries:
        place = folder / entry.path
        file = resolver.settings_for(place.parent).measurements_file
        if file not in files:
            try:
                files[file] = read_measurements(file)
            except MeasurementsError as error:
                files[file] = None
                complain("warning", str(error))
        figures = files[file].of(entry.fingerprint, place) if files[file] is not None else None
        entries.append(entry if figures is None else replace(entry, measured=figures))
    return entries


def _show_statistics(entries: list[Entry], output_format: str) -> None:
    import json
    from collections import Counter

    from torchmemlint.rules import registry

    counts = sorted(Counter(entry.rule for entry in entries).items(), key=lambda item: (-item[1], item[0]))
    if output_format == "json":
        rows = [{"code": code, "count": count} for code, count in counts]
        click.echo(json.dumps(rows, indent=2))
        return
    width = max((len(str(count)) for _, count in counts), default=0)
    for code, count in counts:
        rule = registry.find(code)
        click.echo(f"{count:>{width}}  {code}  {rule.name if rule is not None else 'no rule any more'}")


def _shown(path: Path, resolver: Resolver) -> str:
    from torchmemlint.report.places import shown_path

    return shown_path(path, resolver.root)


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"
