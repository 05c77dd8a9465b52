"""The command line's entry: the group of commands, and what its exceptions become."""

from __future__ import annotations

import difflib
import errno
import os
import sys
import traceback
from collections.abc import Sequence

import click

from torchmemlint import __version__
from torchmemlint.cli.baseline import baseline
from torchmemlint.cli.cache import cache
from torchmemlint.cli.census import census
from torchmemlint.cli.check import check
from torchmemlint.cli.config import config
from torchmemlint.cli.estimate import estimate
from torchmemlint.cli.new_rule import new_rule
from torchmemlint.cli.rule import rule
from torchmemlint.cli.server import server
from torchmemlint.cli.terminal import complain
from torchmemlint.cli.trace import trace
from torchmemlint.cli.verify import verify

DEFAULT = "check"
INTERRUPTED = 130
FAILED = 2


class DefaultGroup(click.Group):
    """A group whose arguments belong to `check` where they do not begin with a command's name."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the default command in front of arguments that name none."""
        own = {name for parameter in self.get_params(ctx) for name in parameter.opts}
        if not args or (args[0] not in self.commands and args[0] not in own):
            args = [DEFAULT, *args]
        return super().parse_args(ctx, args)


@click.group(
    cls=DefaultGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Without a command, `check` is meant: `torchmemlint src/`.",
)
@click.version_option(__version__, "-V", "--version", prog_name="torchmemlint", message="%(prog)s %(version)s")
def cli() -> None:
    """Find GPU-memory anti-patterns in PyTorch code, without running it."""


for command in (check, rule, new_rule, config, baseline, verify, estimate, trace, census, cache, server):
    cli.add_command(command)


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
    complain("error", "internal error; please report it with this traceback")
    traceback.print_exc()
    return FAILED


def nearest_command(word: str) -> str | None:
    """The command that a word which is no path was perhaps meant to be."""
    close = difflib.get_close_matches(word, cli.commands, 1, 0.6)
    return close[0] if close else None
