"""What the commands that run a program share: the program, where and how it runs, and where its report goes."""

from __future__ import annotations

import contextlib
import json
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click

from torchmemlint.cli.cards import card_options, needs_simulation
from torchmemlint.cli.terminal import complain, is_terminal, wants_color

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

    from torchmemlint.runtime.fit import FitReport
    from torchmemlint.runtime.order import Program
    from torchmemlint.runtime.trace_report import TraceReport
    from torchmemlint.runtime.verification import VerifyReport
    from torchmemlint.snapshot.report import OomReport

Command = TypeVar("Command", bound=Callable[..., Any])
Report = TypeVar("Report", bound="FitReport | OomReport | TraceReport | VerifyReport")
_TORCHRUN = "torch.distributed.run"
_FILE = click.Path(path_type=Path, dir_okay=False)
_BACKEND = (
    click.option(
        "--backend",
        type=click.Choice(["auto", "cuda", "cpu", "simulated"]),
        default="auto",
        show_default=True,
        help="Where to measure.",
    ),
    click.option("--fake", is_flag=True, help="Compute only shapes, for models too large for this machine."),
)
_PROGRAM = (
    click.option("-m", "module", is_flag=True, help="SCRIPT is a module's name, as for `python -m`."),
    click.option("--torchrun", is_flag=True, help="Run SCRIPT as torchrun runs it, with one process."),
    click.option(
        "--nproc-per-node",
        "--nproc_per_node",
        type=click.IntRange(min=1),
        metavar="N",
        help="Run SCRIPT as `torchrun --nproc-per-node N` does, each process on a GPU of its own.",
    ),
)
_HOW = (
    click.option(
        "--devices",
        type=click.IntRange(min=1, max=64),
        help="GPUs to simulate.  [default: 1, or one for each process]",
    ),
    click.option(
        "--timeout", type=click.FloatRange(min=1), default=600, show_default=True, help="Seconds for each run."
    ),
    click.option(
        "--seed", type=int, default=0, show_default=True, help="Seed of random, torch and numpy, before each run."
    ),
    click.option("--temporary-directory", is_flag=True, help="Run in an empty directory instead of this one."),
)
_FORMAT = click.option("--output-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
_FORMAT_ON_LINES = click.option(
    "--output-format", type=click.Choice(["text", "json", "sarif"]), default="text", show_default=True
)
_AFTER = (
    click.option("--isolated", is_flag=True, help="Ignore all configuration files."),
    click.option("--config", multiple=True, metavar="FILE|KEY=VALUE", help="A configuration file, or one setting."),
    _FORMAT,
    click.option("--output-file", "-o", type=_FILE, help="Write the report to a file."),
    click.option("--html", type=_FILE, help="Also write the report as an HTML page."),
    click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="Use colours."),
    click.option("--quiet", "-q", is_flag=True, help="Show neither progress nor the program's output."),
)


def how_to_run(command: Command) -> Command:
    """Add the options that say what is run, and how, and on which GPU."""
    return _with(command, (*_PROGRAM, *_BACKEND, card_options, *_HOW))


def how_to_simulate(command: Command) -> Command:
    """Add those that go with a simulated GPU and shapes only."""
    return _with(command, (*_PROGRAM, card_options, *_HOW))


def how_to_report(command: Command) -> Command:
    """Add the options that say how to configure the linter, and where the report goes."""
    return _with(command, _AFTER)


def how_to_report_on_lines(command: Command) -> Command:
    """As `how_to_report`, where a report can also be SARIF."""
    return _with(command, tuple(_FORMAT_ON_LINES if one is _FORMAT else one for one in _AFTER))


def _with(command: Command, options: tuple[Callable[[Command], Command], ...]) -> Command:
    for option in reversed(options):
        command = option(command)
    return command


def program_of(script: str, arguments: tuple[str, ...], options: Mapping[str, Any]) -> Program:
    """What is to be run. Raises click's usage error for a script that is not there, and for what is not one node's."""
    from torchmemlint.runtime.order import Program

    module, processes = options["module"], options["nproc_per_node"] or int(options["torchrun"])
    if (script == "torchrun" and not module and not Path(script).is_file()) or (module and script == _TORCHRUN):
        from torchmemlint.cli.torchrun import launched

        script, arguments, module, processes = launched(arguments, options["devices"])
    if not module and not Path(script).is_file():
        dotted = not script.endswith(".py") and all(part.isidentifier() for part in script.split("."))
        hint = f" Did you mean `-m {script}`?" if dotted else ""
        raise click.UsageError(f"{script}: no such file.{hint}")
    return Program(script, arguments, module, str(Path.cwd()), processes=processes)


def needs_torch(command: str) -> None:
    """Raise where there is no torch, and say how to get it."""
    from torchmemlint.runtime.launch import missing_torch

    missing = missing_torch()
    if missing is not None:
        raise click.ClickException(f"torchmemlint {command} {missing}")


def options_of_run(options: dict[str, Any]) -> dict[str, Any]:
    """Those of `how_to_run`, as `runtime.commands.Options` takes them. Raises a usage error for what does not fit."""
    needs_simulation(options)
    return {
        "backend": options["backend"],
        "fake": options["fake"],
        "card": options["card"],
        "memory": options["memory"],
        "devices": options["devices"],
        "steps": options["steps"],
        "seconds": options["timeout"],
        "seed": options["seed"],
        "elsewhere": options["temporary_directory"],
    }


def measured(measure: Callable[[Progress], Report], options: dict[str, Any]) -> Report | None:
    """What a measurement gives, its progress shown; None, and the reason told, where there is nothing to measure."""
    from torchmemlint.runtime.commands import CannotMeasure

    with _ending_tidily(), Progress(enabled=is_terminal(sys.stderr) and not options["quiet"]) as progress:
        try:
            return measure(progress)
        except CannotMeasure as error:
            progress.close()
            if error.details:
                click.echo(error.details.rstrip(), err=True)
            complain("error", str(error))
            if misplaced := _misplaced_options():
                named = ", ".join(f"`{one}`" for one in misplaced)
                own = click.get_current_context().command_path
                complain("notice", f"the program was given {named}: options of `{own}` go before the program's name")
            return None


def _misplaced_options() -> list[str]:
    """The command's own options among what the program is given."""
    context = click.get_current_context()
    own = {name for one in context.command.params if isinstance(one, click.Option) for name in one.opts}
    given = (argument.partition("=")[0] for argument in context.params.get("arguments", ()))
    return [one for one in given if one.startswith("--") and one in own]


@contextlib.contextmanager
def _ending_tidily() -> Iterator[None]:
    """While entered, the order to end is carried out as Ctrl-C is: children end first, and their files are removed."""

    def leave(number: int, frame: FrameType | None) -> None:
        sys.exit(128 + number)

    try:
        before = signal.signal(signal.SIGTERM, leave)
    except ValueError:  # not the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def hand_over(
    report: Report,
    options: dict[str, Any],
    root: Path,
    write: Callable[..., None],
    page: Callable[[Report, Path], str],
    *,
    sarif: Callable[[Report, Path], dict[str, Any]] | None = None,
    standard: TextIO | None = None,
) -> None:
    """Let a report go where the options say, and as what; raises a usage error where that cannot be.

    `sarif` makes the log of a command that offers the format. Without a file the report goes to `standard`, the
    standard output if that is None.
    """

    def show(stream: TextIO, *, color: bool) -> None:
        if options["output_format"] == "json":
            stream.write(json.dumps(report.to_json(), indent=2) + "\n")
        elif sarif is not None and options["output_format"] == "sarif":
            stream.write(json.dumps(sarif(report, root)) + "\n")
        else:
            write(report, stream, color=color, root=root)

    with report_stream(options["output_file"], options["color"], standard) as (stream, colored):
        show(stream, color=colored)
    if options["html"] is not None:
        text = page(report, root)
        with _writing(options["html"]):
            options["html"].write_text(text, encoding="utf-8")


def needs_page(file: Path | None) -> None:
    """Raise where an HTML page is wanted and what makes it is not there: before the program is run, not after."""
    from torchmemlint.report.page.page import missing_jinja

    missing = missing_jinja() if file is not None else None
    if missing is not None:
        raise click.ClickException(missing)


@contextlib.contextmanager
def report_stream(file: Path | None, color: str, standard: TextIO | None = None) -> Iterator[tuple[TextIO, bool]]:
    """Where a report goes (None: standard output), and whether in colours; a usage error where it cannot be written."""
    if file is None:
        stream = standard or sys.stdout
        yield stream, wants_color(color, stream)
        return
    with _writing(file), file.open("w", encoding="utf-8") as stream:
        yield stream, color == "always"


@contextlib.contextmanager
def _writing(file: Path) -> Iterator[None]:
    """Raises a usage error where the file that the user wants cannot be written."""
    try:
        yield
    except OSError as error:
        raise click.UsageError(f"{file}: cannot be written: {error.strerror}") from None


class Progress:
    """What runs now, and its steps, on the error stream."""

    def __init__(self, *, enabled: bool) -> None:
        self._enabled = enabled
        self._bar: Bar | None = None
        self._tasks: dict[int, TaskID] = {}

    def __enter__(self) -> Progress:
        if self._enabled:
            from rich.console import Console
            from rich.progress import Progress as Bar
            from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

            columns = (
                SpinnerColumn(),
                TextColumn("{task.description}"),
                TextColumn("{task.completed:.0f} steps"),
                TimeElapsedColumn(),
            )
            self._bar = Bar(*columns, console=Console(file=sys.stderr), transient=True)
            self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Take it from the screen."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def begin(self, label: str, number: int, of: int | None) -> None:
        """A run begins."""
        if self._bar is not None:
            total = "" if of is None else f" of {of}"
            self._tasks[number] = self._bar.add_task(f"run {number}{total}: {label}", total=None)

    def steps(self, number: int, made: int) -> None:
        """A run has made so many steps."""
        if self._bar is not None and number in self._tasks:
            self._bar.update(self._tasks[number], completed=made)

    def show(self, written: bytes) -> None:
        """Show what a program wrote, above the progress."""
        if self._bar is None:
            click.echo(written, nl=False, err=True)
        else:
            from rich.text import Text

            text = Text.from_ansi(written.decode("utf-8", "replace"), end="")
            self._bar.console.print(text, soft_wrap=True)

    def end(self, number: int) -> None:
        """A run has ended."""
        if self._bar is not None and number in self._tasks:
            self._bar.remove_task(self._tasks.pop(number))
