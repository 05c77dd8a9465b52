"""`torchmemlint check`: the main job. Its options stand in `check_options`."""

from __future__ import annotations

import sys
import time
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from torchmemlint.cli.check_options import GROUPS
from torchmemlint.cli.executors import LOCAL, opened
from torchmemlint.cli.files import find_files
from torchmemlint.cli.grouped import GroupedCommand
from torchmemlint.cli.outputs import Target, targets
from torchmemlint.cli.showing import Output, exit_code, show, tell
from torchmemlint.cli.sieves import sieve_for
from torchmemlint.cli.terminal import complain, is_terminal
from torchmemlint.report.formats import FORMATS

if TYPE_CHECKING:
    from torchmemlint.cli.configuration import ConfigurationOptions
    from torchmemlint.config.resolver import Resolver
    from torchmemlint.config.settings import Settings
    from torchmemlint.engine.run import RunReport
    from torchmemlint.engine.runner import Request


@click.command(
    cls=GroupedCommand,
    groups=GROUPS,
    short_help="Check files and directories (the default).",
    context_settings={"auto_envvar_prefix": "TORCHMEMLINT"},
)
@click.argument("paths", nargs=-1, metavar="[PATHS]...")
def check(paths: tuple[str, ...], **options: Any) -> int:
    """Check PATHS: files, directories, or `-` for standard input (default: the working directory).

    The exit code is 0 if nothing was found, 1 if there are findings, and 2 for an error. An error is a wrong option,
    a wrong configuration or a failure of the linter.
    """
    _refuse_contradictions(options)
    if options["watch"]:
        from torchmemlint.cli.watching import watch

        return watch(paths or (".",), options, lambda: _guarded(paths, options))
    return _guarded(paths, options)


def _guarded(paths: tuple[str, ...], options: dict[str, Any]) -> int:
    from torchmemlint.config.errors import ConfigError

    try:
        if options["projects_from"] is not None:
            _refuse_to_prove(paths, options)
            return _check_projects(paths, options)
        return _check(paths or (".",), options)
    except ConfigError as error:
        raise click.UsageError(str(error)) from None


def _refuse_contradictions(options: dict[str, Any]) -> None:
    """Refuse options that say the opposite of each other."""
    pairs = (
        ("silent", "verbose", "--silent", "--verbose"),
        ("fix_only", "fix", "--fix-only", "--no-fix"),
        ("add_ignores", "ignore_noqa", "--add-ignores", "--ignore-noqa"),
        ("exit_zero", "exit_non_zero_on_fix", "--exit-zero", "--exit-non-zero-on-fix"),
    )
    for one, other, named, other_named in pairs:
        against = options[other] is False if other_named.startswith("--no-") else options[other]
        if options[one] and against:
            raise click.UsageError(f"{named} and {other_named} contradict each other.")


def _check(paths: tuple[str, ...], options: dict[str, Any]) -> int:
    from torchmemlint.cli.configuration import resolver_for
    from torchmemlint.engine.one_file import Fixing

    resolver = resolver_for(_configuration(options))
    options = _settled(options, resolver.settings_for(resolver.root))
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
        request = replace(request, sieve=sieve_for((named,), resolver, options))
        resolver.settings_for(named.parent)
        _warn(resolver, output)
        report = _check_input(options["stdin_filename"], request, output, force_exclude=options["force_exclude"])
    else:
        found = find_files(
            paths,
            resolver,
            quiet=output.quiet,
            silent=output.silent,
            force_exclude=options["force_exclude"],
            writes=request.fixing is Fixing.WRITE,
        )
        if options["show_files"]:
            for file in found:
                click.echo(str(file))
            return 0
        if options["show_settings"]:
            _show_settings(found, resolver)
            return 0
        request = replace(request, files=found, sieve=sieve_for(found, resolver, options), apart=True)
        _warn(resolver, output)
        if options["prove"] is not None:
            request = _proven(request, options["prove"], output)
        with opened(options, resolver.given.plugins or ()) as executor:
            report = _check_files(replace(request, executor=executor), output)
    return exit_code(report, output)


def _warn(resolver: Resolver, output: Output) -> None:
    """Say what there is to know of the settings."""
    for notice in () if output.silent else resolver.notices():
        complain("warning", notice)


def _settled(options: dict[str, Any], settings: Settings) -> dict[str, Any]:
    """The options with what the configuration says where they say nothing."""
    fixes = settings.fixes
    mends = options["fix"] is not False and not options["add_ignores"]
    said = {
        "fix": fixes.fix and mends,
        "fix_only": fixes.only and mends,
        "unsafe_fixes": fixes.unsafe,
        "show_fixes": fixes.shown,
        "force_exclude": settings.force_exclude,
    }
    formats = options["output_format"] or ((Target(FORMATS[settings.output_format]),),)
    settled = {name: value if options[name] is None else options[name] for name, value in said.items()}
    return {**options, **settled, "output_format": formats}


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
    from torchmemlint.config.settings import Fixes
    from torchmemlint.report.places import NAMES

    refuse_with_projects(paths, options)
    configuration = _configuration(options)
    resolver = resolver_for(configuration)
    settings = resolver.settings_for(resolver.root)  # of those, whose each project has its own, only how to report
    options = _settled(options, replace(settings, fixes=Fixes(), force_exclude=False))
    output = replace(_output(options, resolver), root=NAMES)
    start = time.monotonic()
    with opened(options, resolver.given.plugins or ()) as executor:

        def request_for(resolver: Resolver, files: tuple[Path, ...]) -> Request:
            request = replace(_request(options, resolver), files=files, executor=executor, apart=True)
            return replace(request, sieve=sieve_for(files, resolver, options))

        with opened_corpus(
            options["projects_from"], configuration, request_for, quiet=output.quiet, executor=executor
        ) as corpus:
            report = corpus.report()
            tell(report, time.monotonic() - start, output)
            show(report, output, sys.stdout)
    return exit_code(report, output)


def _configuration(options: dict[str, Any]) -> ConfigurationOptions:
    from torchmemlint.cli.configuration import ConfigurationOptions

    return ConfigurationOptions(**{field.name: options[field.name] for field in fields(ConfigurationOptions)})


def _output(options: dict[str, Any], resolver: Resolver) -> Output:
    names = ("color", "silent", "verbose", "statistics", "diff", "fix_only", "show_fixes", "add_ignores")
    return Output(
        root=resolver.root,
        targets=_targets(options),
        quiet=options["quiet"] or options["silent"],
        folds=not _wants_all(options, resolver),
        **{name: options[name] for name in (*names, "exit_zero", "exit_non_zero_on_fix")},
    )


def _request(options: dict[str, Any], resolver: Resolver) -> Request:
    from torchmemlint.engine.one_file import Fixing
    from torchmemlint.engine.runner import Request

    fixes = options["fix"] or options["fix_only"] or options["add_ignores"]
    return Request(
        (),
        resolver,
        Fixing.PREVIEW if options["diff"] else Fixing.WRITE if fixes else Fixing.NONE,
        options["unsafe_fixes"],
        options["jobs"],
        ignoring=_ignoring(options),
        comments=not options["ignore_noqa"],
        use_cache=not options["no_cache"],
        cache_dir=options["cache_dir"],
    )


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


def _show_settings(files: tuple[Path, ...], resolver: Resolver) -> None:
    from torchmemlint.cli.settings import settings_lines

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
    tell(report, time.monotonic() - start, output)
    show(report, output, sys.stdout)
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
    tell(report, time.monotonic() - start, output)
    if request.fixing is not Fixing.WRITE:
        show(report, output, sys.stdout)
        return report
    fixed = next(iter(report.fixed), None)
    sys.stdout.flush()
    sys.stdout.buffer.write(data if fixed is None else load(data, path).encode(fixed.after))
    sys.stdout.buffer.flush()
    show(report, output, sys.stderr)
    return report


def _nothing(request: Request) -> RunReport:
    from torchmemlint.engine.runner import run

    return run(replace(request, files=()))
