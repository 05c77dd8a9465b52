"""`torchmemlint check`: the main job."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from torchmemlint.cli.confidence import confidence_option
from torchmemlint.cli.corpora import projects_option
from torchmemlint.cli.executors import LOCAL, executor_option, opened
from torchmemlint.cli.outputs import FormatType, Target, deliver, targets
from torchmemlint.cli.terminal import complain, is_terminal, wants_color
from torchmemlint.report.formats import FORMATS

if TYPE_CHECKING:
    from torchmemlint.cli.configuration import ConfigurationOptions
    from torchmemlint.config.resolver import Resolver
    from torchmemlint.engine.run import RunReport
    from torchmemlint.engine.runner import Request
    from torchmemlint.engine.sieve import Sieve
    from torchmemlint.report.formats import Format

_SELECTOR = "RULE_SELECTOR"


@dataclass(frozen=True, slots=True)
class Output:
    """How to show the results."""

    targets: tuple[Target, ...]
    color: str
    quiet: bool
    verbose: int  # how often `-v` was given
    statistics: bool
    folds: bool  # advice, and what a rule repeats in a file
    diff: bool
    fix_only: bool
    add_ignores: bool
    root: Path


@click.command(
    short_help="Check files and directories (the default).",
    context_settings={"auto_envvar_prefix": "TORCHMEMLINT"},
)
@click.argument("paths", nargs=-1, metavar="[PATHS]...")
@click.option(
    "--preset",
    type=click.Choice(["default", "strict", "leaks-only", "training", "inference"]),
    help="Rules for an occasion, instead of the configured ones.",
)
@click.option(
    "--select",
    multiple=True,
    metavar=_SELECTOR,
    help="Rules to check instead of the configured ones: codes, prefixes, names or ALL.",
)
@click.option("--extend-select", multiple=True, metavar=_SELECTOR, help="Rules to check besides the selected ones.")
@click.option("--ignore", multiple=True, metavar=_SELECTOR, help="Rules not to check.")
@click.option("--per-file-ignores", multiple=True, metavar="PATTERN:CODE", help="Rules not to check in some files.")
@click.option("--fix", is_flag=True, help="Apply the safe fixes.")
@click.option("--unsafe-fixes", is_flag=True, help="With --fix or --diff: also the fixes that may change results.")
@click.option(
    "--prove",
    metavar="COMMAND",
    help="With --fix or --diff: make only fixes with which COMMAND still passes, as tried on a copy of the project.",
)
@click.option("--diff", is_flag=True, help="Show what --fix (or --add-ignores) would change, and change nothing.")
@click.option("--add-ignores", is_flag=True, help="Silence what is found by comments: `# torchmemlint: ignore[CODE]`.")
@click.option("--reason", metavar="TEXT", help="With --add-ignores: what the comments give as the reason.")
@click.option("--fix-only", is_flag=True, help="Apply fixes without reporting what is left. Implies --fix.")
@click.option(
    "--output-format",
    type=FormatType(),
    multiple=True,
    default=("full",),
    metavar="FORMAT[:FILE]",
    help=f"How to report, and to which file: {', '.join(FORMATS)}; several with commas, or by repeating it."
    "  [default: full]",
)
@click.option(
    "--output-file",
    "-o",
    type=click.Path(path_type=Path),
    help="Write the report to a file: the one whose format names none.",
)
@click.option("--statistics", is_flag=True, help="Show a count for each rule instead of the findings.")
@click.option(
    "--no-fold", is_flag=True, help="Show all findings in full: also advice, and what a rule repeats in one file."
)
@click.option("--exit-zero", "-e", is_flag=True, help="Exit with 0 in spite of findings.")
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "advice"]),
    help="The least severity that makes the exit code 1.  [default: warning]",
)
@confidence_option
@click.option("--stdin-filename", type=click.Path(path_type=Path), help="The name of what comes by `-`.")
@click.option("--isolated", is_flag=True, help="Ignore all configuration files.")
@click.option(
    "--extend", multiple=True, metavar="MODULE|PATH", help="Rules of your own: a module, a file or a folder of files."
)
@click.option("--config", multiple=True, metavar="FILE|KEY=VALUE", help="A configuration file, or one setting as TOML.")
@click.option(
    "--project-root",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Look for configuration up to here, and give paths relative to here.  [default: the working directory]",
)
@click.option(
    "--limit",
    multiple=True,
    metavar="NAME=NUMBER",
    help="What one file may take: time (seconds), memory (MB), nesting (levels), size (MB). 0 is no limit.",
)
@click.option("--force-exclude", is_flag=True, help="Apply the exclusions to named files, too.")
@click.option(
    "--baseline",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Report only what is not in this baseline.  [default: the configured one, if it is there]",
)
@click.option("--no-baseline", is_flag=True, help="Report also what is in a baseline.")
@click.option(
    "--new-since",
    metavar="REV",
    help="Report only what was not found yet where the history left that of REV, as git tells.",
)
@projects_option
@click.option("--show-files", is_flag=True, help="List the files that would be checked.")
@click.option("--show-settings", is_flag=True, help="Show the settings for the (first) file.")
@click.option("--no-cache", "-n", is_flag=True, help="Neither use results of earlier runs nor keep this one's.")
@click.option(
    "--cache-dir",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep results here.  [default: the user's cache directory]",
)
@click.option("--jobs", "-j", type=click.IntRange(min=1), help="Use at most so many processes.")
@executor_option
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="Use colours.")
@click.option("--quiet", "-q", is_flag=True, help="Show findings and nothing else.")
@click.option(
    "--verbose", "-v", count=True, help="Say on the error stream what was read, and why; all of it if given twice."
)
def check(paths: tuple[str, ...], **options: Any) -> int:
    """Check PATHS (files, directories, or `-` for standard input; by default the working directory).

    The exit code is 0 if nothing was found, 1 if there are findings, and 2 if something is wrong with the
    options, the configuration or the linter.
    """
    from torchmemlint.config.errors import ConfigError

    try:
        if options["projects_from"] is not None:
            _refuse_to_prove(paths, options)
            return _check_projects(paths, options)
        return _check(paths or (".",), options)
    except ConfigError as error:
        raise click.UsageError(str(error)) from None


def _check(paths: tuple[str, ...], options: dict[str, Any]) -> int:
    from torchmemlint.cli.configuration import resolver_for
    from torchmemlint.engine.one_file import Fixing

    resolver = resolver_for(_configuration(options))
    output, request = _output(options, resolver), _request(options, resolver)
    _refuse_to_prove(paths, options)
    if "-" in paths:
        if len(paths) > 1:
            raise click.UsageError("`-` (standard input) cannot be combined with other paths.")
        if options["new_since"] is not None:
            raise click.UsageError("--new-since compares files with what git has of them, not standard input.")
        if options["executor"] != LOCAL:
            raise click.UsageError("--executor is for files, not for standard input.")
        named = (options["stdin_filename"] or Path("-")).absolute()
        request = replace(request, sieve=_sieve((named,), resolver, options))
        report = _check_input(options["stdin_filename"], request, output, force_exclude=options["force_exclude"])
    else:
        writes = request.fixing is Fixing.WRITE
        found = find_files(paths, resolver, quiet=output.quiet, force_exclude=options["force_exclude"], writes=writes)
        if options["show_files"]:
            for file in found:
                click.echo(str(file))
            return 0
        if options["show_settings"]:
            _show_settings(found, resolver)
            return 0
        request = replace(request, files=found, sieve=_sieve(found, resolver, options), apart=True)
        if options["prove"] is not None:
            request = _proven(request, options["prove"], output)
        with opened(options, resolver.given.extend or ()) as executor:
            report = _check_files(replace(request, executor=executor), output)
    return _exit_code(report, output, exit_zero=options["exit_zero"])


def _refuse_to_prove(paths: tuple[str, ...], options: dict[str, Any]) -> None:
    """Refuse `--prove` where there is nothing that it could prove."""
    if options["prove"] is None:
        return
    if options["add_ignores"] or not (options["fix"] or options["fix_only"] or options["diff"]):
        raise click.UsageError("--prove belongs to --fix or --diff.")
    if "-" in paths or options["projects_from"] is not None or options["executor"] != LOCAL:
        raise click.UsageError("--prove is for files of one project, checked here.")


def _proven(request: Request, command: str, output: Output) -> Request:
    """The request without the fixes with which a command fails."""
    from torchmemlint.engine.proving import ProofError, prove

    def tell(line: str) -> None:
        if not output.quiet:
            complain("notice", f"--prove: {line}")

    try:
        proof = prove(request, command, Path.cwd(), tell)
    except ProofError as error:
        raise click.UsageError(f"--prove: {error}") from None
    kept = proof.tried - sum(map(len, proof.held.values()))
    if proof.tried:
        tell(f"{kept} of {proof.tried} fixes are kept, after {proof.runs} runs of the command")
    return replace(request, held=proof.held)


def _check_projects(paths: tuple[str, ...], options: dict[str, Any]) -> int:
    """Check the projects of a list; each has its own configuration, and its name in front of its files' paths."""
    from torchmemlint.cli.configuration import resolver_for
    from torchmemlint.cli.corpora import opened_corpus, refuse_with_projects
    from torchmemlint.report.places import NAMES

    refuse_with_projects(paths, options)
    configuration = _configuration(options)
    resolver = resolver_for(configuration)
    output = replace(_output(options, resolver), root=NAMES)
    start = time.monotonic()
    with opened(options, resolver.given.extend or ()) as executor:

        def request_for(resolver: Resolver, files: tuple[Path, ...]) -> Request:
            request = replace(_request(options, resolver), files=files, executor=executor, apart=True)
            return replace(request, sieve=_sieve(files, resolver, options))

        with opened_corpus(
            options["projects_from"], configuration, request_for, quiet=output.quiet, executor=executor
        ) as corpus:
            report = corpus.report()
            _tell(report, time.monotonic() - start, output)
            _show(report, output, sys.stdout)
    return _exit_code(report, output, exit_zero=options["exit_zero"])


def _configuration(options: dict[str, Any]) -> ConfigurationOptions:
    from torchmemlint.cli.configuration import ConfigurationOptions

    names = (
        "select",
        "extend_select",
        "ignore",
        "per_file_ignores",
        "fail_on",
        "config",
        "isolated",
        "project_root",
        "extend",
        "preset",
        "limit",
        "confidence",
    )
    return ConfigurationOptions(**{name: options[name] for name in names})


def _output(options: dict[str, Any], resolver: Resolver) -> Output:
    return Output(
        root=resolver.root,
        targets=_targets(options),
        **{name: options[name] for name in ("color", "quiet", "verbose")},
        **{name: options[name] for name in ("statistics", "diff", "fix_only", "add_ignores")},
        folds=not _wants_all(options, resolver),
    )


def _request(options: dict[str, Any], resolver: Resolver) -> Request:
    from torchmemlint.engine.one_file import Fixing
    from torchmemlint.engine.runner import Request

    fixes = options["fix"] or options["fix_only"] or options["add_ignores"]
    fixing = Fixing.PREVIEW if options["diff"] else Fixing.WRITE if fixes else Fixing.NONE
    request = Request((), resolver, fixing, options["unsafe_fixes"], options["jobs"], ignoring=_ignoring(options))
    return replace(request, use_cache=not options["no_cache"], cache_dir=options["cache_dir"])


def _targets(options: dict[str, Any]) -> tuple[Target, ...]:
    found = targets(options["output_format"], options["output_file"])
    if options["statistics"] and (without := next((one.format for one in found if not one.format.counts), None)):
        raise click.UsageError(f"--statistics has no form for `{without.name}`.")
    if (options["diff"] or options["fix_only"] or options["add_ignores"]) and len(found) > 1:
        option = "--diff" if options["diff"] else "--fix-only" if options["fix_only"] else "--add-ignores"
        raise click.UsageError(f"{option} makes no report: only one place for its output can be given.")
    return found


def _wants_all(options: dict[str, Any], resolver: Resolver) -> bool:
    """Is everything asked for in full: by the option, by rules named for this run, or as advice is to fail it?"""
    if options["no_fold"] or options["select"] or options["extend_select"]:
        return True
    return resolver.settings_for(resolver.root).fail_on.rank == 0


def _ignoring(options: dict[str, Any]) -> str | None:
    """The reason that new comments give; None if there are to be no comments."""
    reason: str | None = options["reason"]
    if not options["add_ignores"]:
        if reason is not None:
            raise click.UsageError("--reason belongs to --add-ignores.")
        return None
    if options["fix"] or options["fix_only"]:
        raise click.UsageError("--add-ignores silences what --fix would mend: give one of them.")
    if reason is not None and ("#" in reason or not reason.isprintable()):
        raise click.UsageError("--reason must be one line without `#`, which begins another comment.")
    return (reason or "").strip()


def _sieve(files: tuple[Path, ...], resolver: Resolver, options: dict[str, Any]) -> Sieve | None:
    """What chooses the findings to report; None if all of them are. Raises ConfigError where it cannot."""
    sieves = [*_baselines(files, resolver, options), *_since(files, resolver, options)]
    if not sieves:
        return None
    from torchmemlint.engine.sieve import Sieves

    return Sieves(sieves)


def _baselines(files: tuple[Path, ...], resolver: Resolver, options: dict[str, Any]) -> Iterator[Sieve]:
    if options["no_baseline"]:
        if options["baseline"] is not None:
            raise click.UsageError("--baseline and --no-baseline contradict each other.")
        return
    settings = [resolver.settings_for(folder) for folder in {file.parent for file in files}]
    if options["baseline"] is not None or any(one.baseline or one.baseline_file.exists() for one in settings):
        from torchmemlint.engine.sieve import Baselines

        baselines = Baselines(resolver, options["baseline"])
        if baselines.read(files):
            yield baselines


def _since(files: tuple[Path, ...], resolver: Resolver, options: dict[str, Any]) -> Iterator[Sieve]:
    if options["new_since"] is not None:
        from torchmemlint.engine.runner import check_texts
        from torchmemlint.engine.since import Since
        from torchmemlint.source.revisions import RevisionError, changes_since

        changes = changes_since(options["new_since"], resolver.root)
        for folder in {file.parent for file in files}:
            if changes.name_of(folder / "-") is None:
                raise RevisionError(f"--new-since: {folder} is not in the repository {changes.top}")
        yield Since(changes, lambda texts: check_texts(texts, resolver, options["jobs"]))


def find_files(
    paths: tuple[str, ...],
    resolver: Resolver,
    *,
    quiet: bool = False,
    force_exclude: bool = False,
    writes: bool = False,
) -> tuple[Path, ...]:
    """The files to check in what was named, with what there is to say about them said."""
    from torchmemlint.source.discovery import MissingPathError, discover

    try:
        found = discover([Path(path) for path in paths], resolver.settings_for, force_exclude=force_exclude)
    except MissingPathError as error:
        raise click.UsageError(f"{error}{_command_hint(paths)}") from None
    for notice in (*found.notices, *_left_behind(found.leftovers, remove=writes)):
        complain("notice", notice)
    if not found.files and found.refused:
        raise click.UsageError("None of the given files can be checked.")
    if not found.files and not found.excluded and not quiet:
        complain("warning", "no Python files found under the given path(s)")
    return found.files


def _left_behind(leftovers: Sequence[Path], *, remove: bool) -> Iterator[str]:
    """What is said of half-written files; a run that writes removes them."""
    if leftovers and remove:
        from torchmemlint.fixes.write import remove_leftovers

        for path in remove_leftovers(leftovers):
            yield f"{path}: removed: a run that was killed had left it half written"
    elif leftovers:
        yield from (f"{path}: left by a run that was killed; the next one with --fix removes it" for path in leftovers)


def _command_hint(paths: tuple[str, ...]) -> str:
    from torchmemlint.cli.main import nearest_command

    near = None if Path(paths[0]).exists() else nearest_command(paths[0])
    return f". Did you mean the command `{near}`?" if near else ""


def _show_settings(files: tuple[Path, ...], resolver: Resolver) -> None:
    from torchmemlint.cli.configuration import settings_lines

    place = files[0] if files else resolver.root
    click.echo(f'Settings for: "{place}"')
    for line in settings_lines(resolver.settings_for(place.parent if files else place)):
        click.echo(line)


def _check_files(request: Request, output: Output) -> RunReport:
    from torchmemlint.cli.progress import ProgressBar
    from torchmemlint.engine.runner import run

    start = time.monotonic()
    with ProgressBar(len(request.files), enabled=is_terminal(sys.stderr) and not output.quiet) as progress:
        report = run(request, progress)
    _tell(report, time.monotonic() - start, output)
    _show(report, output, sys.stdout)
    return report


def _check_input(name: Path | None, request: Request, output: Output, *, force_exclude: bool) -> RunReport:
    """Standard input to report; with fixes, the fixed text goes to standard output, the report to the error stream."""
    from torchmemlint.engine.one_file import Fixing
    from torchmemlint.engine.runner import run_bytes
    from torchmemlint.source.discovery import is_excluded
    from torchmemlint.source.loading import load

    data = sys.stdin.buffer.read()
    start = time.monotonic()
    path = (name or Path("-")).absolute()
    if name is not None and force_exclude and is_excluded(path, request.resolver.settings_for):
        report = _nothing(request)
    else:
        report = run_bytes(data, path, request)
    _tell(report, time.monotonic() - start, output)
    if request.fixing is not Fixing.WRITE:
        _show(report, output, sys.stdout)
        return report
    fixed = next(iter(report.fixed), None)
    sys.stdout.flush()
    sys.stdout.buffer.write(data if fixed is None else load(data, path).encode(fixed.after))
    sys.stdout.buffer.flush()
    _show(report, output, sys.stderr)
    return report


def _tell(report: RunReport, seconds: float, output: Output) -> None:
    """What `--verbose` asks for."""
    if not output.verbose:
        return
    from torchmemlint.cli import verbosity

    for line in verbosity.lines(report, seconds, output.root, output.verbose):
        complain("notice", line)


def _nothing(request: Request) -> RunReport:
    from torchmemlint.engine.runner import run

    return run(replace(request, files=()))


def _show(report: RunReport, output: Output, standard: TextIO) -> None:
    """The report in each format that is asked for; `standard` is for those without a file."""
    from torchmemlint.report import write, write_diff

    report = replace(report, show_summary=not output.quiet, folds=output.folds)

    def show(output_format: Format, stream: TextIO) -> None:
        color = wants_color(output.color, stream) if stream is standard else output.color == "always"
        if output.diff:
            write_diff(report, stream, color=color, root=output.root)
        elif not output.fix_only and not (output.add_ignores and not report.findings):
            name = output_format.name
            left = replace(report, fixed=()) if output.add_ignores else report
            write(left, name, stream, color=color, root=output.root, statistics=output.statistics)

    deliver(output.targets, standard, show)
    if (output.diff or output.fix_only or output.add_ignores) and not output.quiet:
        fixed = sum(len(one.applied) for one in report.fixed)
        done, would = ("Ignored", "Would ignore") if output.add_ignores else ("Fixed", "Would fix")
        click.echo(f"{would if output.diff else done} {fixed} problem{'' if fixed == 1 else 's'}.", err=True)


def _exit_code(report: RunReport, output: Output, *, exit_zero: bool) -> int:
    for notice in report.notices:
        complain("warning", notice)
    for error in report.errors:
        complain("error", error)
    if output.verbose:
        for traceback in report.tracebacks:
            click.echo(traceback, err=True)
    if report.errors:
        return 2
    if exit_zero:
        return 0
    if output.diff:
        return int(any(one.after != one.before for one in report.fixed))
    if output.fix_only:
        return 0
    return int(report.failing > 0)
