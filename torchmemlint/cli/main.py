"""The command line's entry: the group of commands, and what its exceptions become."""

from __future__ import annotations

import atexit
import errno
import gc
import importlib
import os
import sys
from collections.abc import Sequence

import click

from torchmemlint import __version__
from torchmemlint.cli.terminal import complain

# Each is a module of this folder, and in it a command, of the same name (`new-rule` is `new_rule` there).
COMMANDS = (
    "baseline",
    "cache",
    "census",
    "check",
    "config",
    "diff",
    "estimate",
    "fit",
    "new-rule",
    "oom",
    "rule",
    "rules",
    "run",
    "server",
    "trace",
    "verify",
)
DEFAULT = "check"
INTERRUPTED = 130
FAILED = 2

# At its end Python looks for cycles among all that lives, several times: 50 ms after a check, for memory that goes back
# to the system anyway.
atexit.register(gc.freeze)


class Commands(click.Group):
    """The commands, each imported when it is asked for: start-up time is the user's time.

    Arguments belong to `check` where they do not begin with a command's name.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Give the commands' names, in the order of `--help`."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command of that name."""
        if cmd_name not in COMMANDS:
            return None
        module = cmd_name.replace("-", "_")
        command: click.Command = getattr(importlib.import_module(f"torchmemlint.cli.{module}"), module)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the default command in front of arguments that name none."""
        own = {name for parameter in self.get_params(ctx) for name in parameter.opts}
        if not args or (args[0] not in COMMANDS and args[0] not in own):
            args = [DEFAULT, *args]
        return super().parse_args(ctx, args)


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Without a command, `check` is meant: `torchmemlint src/`.",
)
@click.version_option(__version__, "-V", "--version", prog_name="torchmemlint", message="%(prog)s %(version)s")
def cli() -> None:
    """Find GPU-memory anti-patterns in PyTorch code, without running it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and give its exit code."""
    try:
        code = cli.main(None if arguments is None else list(arguments), prog_name="torchmemlint", standalone_mode=False)
        if not sys.stdout.closed:  # a server's client closes it
            sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        return FAILED
    except (click.Abort, KeyboardInterrupt):
        complain("error", "interrupted")
        return INTERRUPTED
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except OSError as error:
        if error.filename is not None or error.errno not in (errno.ENOSPC, errno.EIO, errno.EFBIG, errno.EDQUOT):
            return _failed()
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left would not go out at the end, too
        complain("error", f"standard output cannot be written: {error.strerror}")
        return FAILED
    except Exception:  # noqa: BLE001 (the last resort: 1 would mean findings)
        return _failed()
    return code if isinstance(code, int) else 0


def _failed() -> int:
    import traceback

    complain("error", "internal error; please report it with this traceback")
    traceback.print_exc()
    return FAILED


def nearest_command(word: str) -> str | None:
    """The command that a word which is no path was perhaps meant to be."""
    import difflib

    close = difflib.get_close_matches(word, COMMANDS, 1, 0.6)
    return close[0] if close else None
