"""What `verify` and `trace` share: how a program is run, what the linter says of the files that ran, and how it ended.

Knows nothing of torch.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from torchmemlint.config.resolver import Resolver
from torchmemlint.engine.runner import Request, run
from torchmemlint.findings import Finding
from torchmemlint.immutable import immutable
from torchmemlint.runtime.launch import order_for
from torchmemlint.runtime.order import SECONDS, STEPS, Order, Program
from torchmemlint.runtime.results import End, RunResult


class CannotMeasure(Exception):  # noqa: N818 - it is no error of ours
    """The program cannot be measured; `details` are its traceback or the last of its error stream."""

    def __init__(self, result: RunResult) -> None:
        ours = result.usable and result.failed_looks  # then the program itself ran
        why = f"what looks at it failed: {result.failed_look}" if ours else result.error
        super().__init__(f"the program {'cannot be measured' if ours else 'does not run'}: {why}")
        self.details = result.traceback


@immutable()
class Options:
    """How to run a program."""

    backend: str = "auto"
    fake: bool = False
    card: str | None = None  # the GPU to simulate
    memory: int | None = None  # its bytes, if not its own
    limit: int | None = None  # the bytes at which it runs out of them, if not those
    devices: int | None = None  # GPUs to simulate
    steps: int = STEPS
    seconds: float = SECONDS
    seed: int = 0
    elsewhere: bool = False  # in an empty temporary directory

    def order(self, program: Program, folder: Path, *, least: int = 0, **settings: Any) -> Order:
        """An order for a run, with its files in a workspace; it has at least so many steps."""
        if self.elsewhere:
            program = replace(program, elsewhere=tempfile.mkdtemp(dir=folder))
        return order_for(
            program,
            folder,
            backend=self.backend,
            fake=self.fake,
            card=self.card,
            memory=self.memory,
            limit=self.limit,
            devices=self.devices,
            steps=max(self.steps, least),
            seconds=self.seconds,
            seed=self.seed,
            **settings,
        )


def lint(files: Iterable[str], resolver: Resolver) -> tuple[list[Finding], tuple[str, ...]]:
    """The findings in the files that a program ran, and the files that could not be checked, with the reasons."""
    paths = tuple(sorted({Path(file).resolve() for file in files}))
    checked = run(Request(paths, resolver, jobs=1))
    # What an earlier run told of them has no place in this one's report.
    return [replace(one, measured=None) for one in checked.findings], checked.errors


def notes_on(result: RunResult, options: Options) -> Iterator[str]:
    """What is to be known of how a program ran."""
    if result.end is End.FAILED and result.out_of_memory is None:
        yield f"the program ended with an error after {result.steps} steps: {result.error}"
    if result.failed_looks:
        times = "once" if result.failed_looks == 1 else f"{result.failed_looks} times"
        yield f"what looks at the program failed {times}, so bytes and holders may be missing: {result.failed_look}"
    if result.end is End.TIME:
        yield f"the program was ended after {options.seconds:.0f} s, by the time limit"
    if result.end is End.STOPPED:
        yield "the program was stopped: it made many times the steps asked for"
