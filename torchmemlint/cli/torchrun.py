"""A command line of torchrun, read by torchrun's own parser, as what `verify` and `trace` run."""

from __future__ import annotations

import contextlib
import importlib
import io
from collections.abc import Sequence
from typing import Any

import click

_ONE_NODE = ("1", "1:1")


def launched(words: Sequence[str], devices: int | None) -> tuple[str, tuple[str, ...], bool, int]:
    """The script, its arguments, whether it is a module, and the number of processes. Raises click's usage error.

    `devices` is how many GPUs are simulated, where the user said so: `--nproc-per-node gpu` means as many processes.
    """
    options = _parsed(list(words))
    if options.nnodes not in _ONE_NODE:
        raise click.UsageError(f"torchrun --nnodes {options.nnodes}: only runs on one node can be measured.")
    if options.no_python:
        raise click.UsageError("torchrun --no-python: only Python programs can be measured.")
    processes = _processes(str(options.nproc_per_node), devices)
    return options.training_script, tuple(options.training_script_args), bool(options.module), processes


def _parsed(words: list[str]) -> Any:
    from torchmemlint.runtime.launch import import_torch

    import_torch()
    try:
        parser = importlib.import_module("torch.distributed.run").get_args_parser()
        parser.prog = "torchrun"
    except ImportError as error:
        raise click.UsageError(f"this torch has no torchrun: {error}") from None
    told = io.StringIO()
    try:
        with contextlib.redirect_stderr(told):
            return parser.parse_args(words)
    except SystemExit:  # argparse's way to say that the words are wrong
        lines = told.getvalue().strip().splitlines()
        raise click.UsageError(lines[-1] if lines else "torchrun needs a script.") from None


def _processes(wanted: str, devices: int | None) -> int:
    if wanted.isdigit() and int(wanted) > 0:
        return int(wanted)
    if wanted == "cpu":
        from torchmemlint.engine.pool import cpus

        return cpus()
    if wanted in ("gpu", "auto"):
        torch: Any = importlib.import_module("torch")
        return devices or torch.cuda.device_count() or 1
    raise click.UsageError(f"torchrun --nproc-per-node {wanted}: neither a number nor one of auto, cpu, gpu.")
