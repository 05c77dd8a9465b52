"""`--output-format` and `--output-file`: which reports are asked for, and where each goes."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TextIO

import click

from torchmemlint.immutable import immutable
from torchmemlint.report.formats import FORMATS, Format

_STANDARD_OUTPUT = Path("-")


@immutable()
class Target:
    """One report: its format, and the file that it goes to; None for standard output."""

    format: Format
    file: Path | None = None


class FormatType(click.ParamType):  # type: ignore[type-arg]  # older releases of click have none
    """`FORMAT[:FILE]`, or several of them with commas between."""

    name = "format"
    envvar_list_splitter = ","

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[Target, ...]:
        """The targets that a value names."""
        if isinstance(value, tuple):
            return value
        return tuple(self._target(part.strip(), param, ctx) for part in value.split(","))

    def _target(self, text: str, param: click.Parameter | None, ctx: click.Context | None) -> Target:
        name, colon, file = text.partition(":")
        if name not in FORMATS:
            from torchmemlint.config.errors import did_you_mean

            known = list(FORMATS)
            hint = did_you_mean(name, known)
            self.fail(f"{name!r} is not an output format.{hint} There are: {', '.join(known)}.", param, ctx)
        if colon and not file:
            self.fail(f"{text!r} names no file.", param, ctx)
        return Target(FORMATS[name], Path(file) if file else None)


def targets(chosen: Sequence[Sequence[Target]], file: Path | None) -> tuple[Target, ...]:
    """The reports that the options ask for. Raises a usage error where they cannot all be had."""
    wanted = [one for several in chosen for one in several]
    if file is not None:
        without = [one for one in wanted if one.file is None]
        if len(without) != 1:
            names = " and ".join(f"`{one.format.name}`" for one in without)
            reason = f"{names} cannot share one" if without else "each format has its own"
            raise click.UsageError(f"--output-file {file}: {reason}; give a file to each: --output-format FORMAT:FILE.")
        wanted = [Target(one.format, one.file or file) for one in wanted]
    found = tuple(Target(one.format, None if one.file == _STANDARD_OUTPUT else one.file) for one in wanted)
    _refuse_mixing(found)
    for one in found:
        if (complaint := one.format.missing()) is not None:
            raise click.UsageError(f"{complaint}.")
        if one.file is not None:
            _refuse_unwritable(one.file)
    return found


def _refuse_mixing(found: Sequence[Target]) -> None:
    shared = [one.format for one in found if one.file is None]
    if len(shared) > 1 and (alone := next((one for one in shared if one.document), None)) is not None:
        others = " and ".join(f"`{one.name}`" for one in shared if one is not alone)
        raise click.UsageError(
            f"`{alone.name}` cannot share standard output with {others or 'itself'}; give it a file:"
            f" --output-format {alone.name}:FILE."
        )
    files = [one.file.resolve() for one in found if one.file is not None]
    if twice := next((file for file in files if files.count(file) > 1), None):
        raise click.UsageError(f"{twice}: two reports cannot go to one file.")


def _refuse_unwritable(file: Path) -> None:
    """Said before the run, which may be long."""
    if file.is_dir():
        raise click.UsageError(f"{file}: cannot be written: it is a folder.")
    if not file.parent.is_dir():
        raise click.UsageError(f"{file}: cannot be written: there is no folder {file.parent}.")
    if not os.access(file if file.exists() else file.parent, os.W_OK):
        raise click.UsageError(f"{file}: cannot be written: permission denied.")


def deliver(found: Sequence[Target], standard: TextIO, show: Callable[[Format, TextIO], None]) -> None:
    """Let `show` write each report to its place: files first, so that a closed pipe does not lose them."""
    for one in sorted(found, key=lambda target: target.file is None):  # stable
        if one.file is None:
            show(one.format, standard)
            continue
        text = io.StringIO()
        show(one.format, text)
        write(one.file, text.getvalue())


def write(file: Path, text: str) -> None:
    """Whole or not at all, where the place allows it; a pipe or a device is written to as it is.

    Raises a usage error.
    """
    try:
        _write(file, text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise click.UsageError(f"{file}: cannot be written: {error.strerror}.") from None


def _write(file: Path, data: bytes) -> None:
    if (file.exists() and not file.is_file()) or not os.access(file.resolve().parent, os.W_OK):
        file.write_bytes(data)
        return
    from torchmemlint.fixes.write import write_atomically

    write_atomically(file, data, create=True)
