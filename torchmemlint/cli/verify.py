"""`torchmemlint verify`: what the findings of a program cost, measured by running it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from torchmemlint.cli.confidence import confidence_option
from torchmemlint.cli.running import (
    hand_over,
    how_to_report,
    how_to_run,
    measured,
    needs_page,
    needs_torch,
    options_of_run,
    program_of,
)
from torchmemlint.cli.terminal import complain

if TYPE_CHECKING:
    from torchmemlint.config.resolver import Resolver
    from torchmemlint.runtime.order import Program
    from torchmemlint.runtime.verification import VerifyReport

_SELECTOR = "RULE_SELECTOR"


@click.command(
    short_help="Run a program, and measure what each finding costs.",
    context_settings={"auto_envvar_prefix": "TORCHMEMLINT_VERIFY", "allow_interspersed_args": False},
)
@click.argument("script", required=False)
@click.argument("arguments", nargs=-1, metavar="[ARGS]...", type=click.UNPROCESSED)
@click.option("--rule", "rules", multiple=True, metavar="CODE", help="Run a rule's own experiment instead of a script.")
@click.option("--all-rules", is_flag=True, help="Run the experiments of all rules.")
@how_to_run
@click.option("--steps", type=click.IntRange(min=6), default=12, show_default=True, help="Steps of each loop.")
@click.option("--unsafe-fixes", is_flag=True, help="Also try the fixes that may change results.")
@click.option(
    "--jobs",
    "-j",
    type=click.IntRange(min=1),
    help="How many runs at once. The default is one, but simulations use what the machine has room for. On a GPU it is"
    " always one.",
)
@click.option("--select", multiple=True, metavar=_SELECTOR, help="Rules to check instead of the configured ones.")
@click.option("--extend-select", multiple=True, metavar=_SELECTOR, help="Rules to check besides the selected ones.")
@click.option("--ignore", multiple=True, metavar=_SELECTOR, help="Rules not to check.")
@confidence_option
@click.option("--record", is_flag=True, help="Keep the figures. `check` then shows them with the findings.")
@click.option(
    "--record-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Keep them in this file instead of the configured one.",
)
@how_to_report
def verify(script: str | None, arguments: tuple[str, ...], **options: Any) -> int:
    """Run SCRIPT for a few steps as it is, and with each finding fixed, and compare.

    Every run is a process of its own with the same seed. Loops that contain steps are cut short. Your files are not
    changed. Use --rule or --all-rules to run rules' own experiments: small programs with the pattern and without it.
    The exit code is 1 if a finding's cost is confirmed or memory runs out, 0 if not, and 2 for an error.
    """
    from torchmemlint.config.errors import ConfigError
    from torchmemlint.measured import MeasurementsError

    needs_torch("verify")
    needs_page(options["html"])
    if options["rules"] or options["all_rules"]:
        if script is not None:
            raise click.UsageError("Give either a script, or --rule or --all-rules.")
        if options["record"] or options["record_file"] is not None:
            raise click.UsageError("--record keeps figures of a script's findings, not of a rule's experiment.")
        if options["card"] is not None or options["memory"] is not None:
            raise click.UsageError("--card and --memory are for a script; a rule's experiment has a small program.")
        from torchmemlint.cli.experiments import run_experiments

        return run_experiments(options["rules"], options["backend"], options["output_format"])
    if script is None:
        raise click.UsageError("Missing argument 'SCRIPT' (or give --rule CODE, or --all-rules).")
    program = program_of(script, arguments, options)
    try:
        return _verify(program, options)
    except ConfigError as error:
        raise click.UsageError(str(error)) from None
    except MeasurementsError as error:
        complain("error", str(error))
        return 2


def _verify(program: Program, options: dict[str, Any]) -> int:
    from torchmemlint.cli.configuration import ConfigurationOptions, resolver_for
    from torchmemlint.runtime.verify import Options, verify

    names = ("select", "extend_select", "ignore", "config", "isolated", "confidence")
    chosen = {name: options[name] for name in names}
    resolver = resolver_for(ConfigurationOptions(**chosen))
    how = Options(**options_of_run(options), unsafe=options["unsafe_fixes"], jobs=options["jobs"])
    recorder = _recorder(resolver, options)
    report = measured(lambda progress: verify(program, resolver, how, progress), options)
    if report is None:
        return 2
    try:
        from torchmemlint.report.page.page import verification_page
        from torchmemlint.report.verification import write_verification

        hand_over(report, options, resolver.root, write_verification, verification_page)
    finally:  # figures that took minutes are not lost for a report that cannot be written
        if recorder is not None:
            recorder(report)
    return int(report.confirmed or report.before.out_of_memory is not None)


def _recorder(resolver: Resolver, options: dict[str, Any]) -> Callable[[VerifyReport], None] | None:
    """What keeps the figures, if that is wanted. Raises MeasurementsError where it is known now that it could not."""
    given: Path | None = options["record_file"]
    if given is None and not options["record"]:
        return None
    from torchmemlint.report.places import shown_path
    from torchmemlint.runtime import recording

    def file_for(filename: Path) -> Path:
        # Where `check` looks for it, unless told otherwise.
        return given or resolver.settings_for(filename.parent).measurements_file

    def keep(report: VerifyReport) -> None:
        counts = recording.record(report, file_for, date.today().isoformat())
        if options["quiet"]:
            return
        if not counts:
            complain("notice", "nothing was measured of any finding, so there is nothing to record")
        for path, count in counts.items():
            complain(
                "notice", f"recorded {count} finding{'' if count == 1 else 's'} in {shown_path(path, resolver.root)}"
            )

    recording.check(file_for(resolver.root / "script.py"))
    return keep
