"""`--executor`: where the files are checked."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

if TYPE_CHECKING:
    from torchmemlint.engine.runner import Executor

LOCAL = "local"
_SCHEME = "dask"


class ExecutorType(click.ParamType):  # type: ignore[type-arg]  # older releases of click have none
    """`local`, or `dask://HOST:PORT`, which becomes the scheduler's address as Dask writes it."""

    name = "executor"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """`local`, or the scheduler's address."""
        if value == LOCAL:
            return LOCAL
        try:
            parts = urlsplit(value)
            host, port = parts.hostname, parts.port
        except ValueError:
            host = port = None
            parts = urlsplit("")
        if parts.scheme != _SCHEME or host is None or port is None or parts.path.strip("/") or parts.query:
            self.fail(f"{value!r} is neither `local` nor of the form dask://HOST:PORT.", param, ctx)
        return f"tcp://[{host}]:{port}" if ":" in host else f"tcp://{host}:{port}"


executor_option = click.option(
    "--executor",
    type=ExecutorType(),
    default=LOCAL,
    metavar="local|dask://HOST:PORT",
    help="Check files in processes here, or on a Dask cluster.  [default: local]",
)


@contextlib.contextmanager
def opened(options: dict[str, Any], plugins: tuple[str, ...]) -> Iterator[Executor | None]:
    """What `--executor` names; None for this machine's processes. `plugins` brings rules.

    Raises click's exceptions: where the executor cannot be had, and where it fails within.
    """
    address: str = options["executor"]
    if address == LOCAL:
        yield None
        return
    _refuse(options, plugins)
    from torchmemlint.engine.cluster.dask_executor import ClusterError, connected

    try:
        with connected(address, plugins) as executor:
            yield executor
    except ClusterError as error:
        raise click.ClickException(f"--executor: {error}.") from None


def _refuse(options: dict[str, Any], plugins: tuple[str, ...]) -> None:
    from importlib.util import find_spec

    if find_spec("distributed") is None:
        raise click.UsageError("--executor dask://… needs distributed: pip install 'torchmemlint[dask]'.")
    for option in ("fix", "fix_only", "add_ignores"):
        if options.get(option) and not options.get("diff"):
            raise click.UsageError(
                f"--{option.replace('_', '-')} changes files, which is done here: leave out --executor, or give --diff."
            )
    for word in plugins:
        if Path(word).is_absolute():
            raise click.UsageError(
                f"--plugins {word}: a file does not reach the workers of a cluster; install a package of rules there."
            )
