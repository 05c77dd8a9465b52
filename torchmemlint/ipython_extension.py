"""Findings under the cells that are run in IPython and Jupyter: `%load_ext torchmemlint`.

A cell is checked just before its code runs. It is read with all cells that were run so far as one program, in the order
of their first run. Its findings stand under it, and so do those of earlier cells that are new with it. torch is not
imported for that, and nothing is changed. `%torchmemlint` shows the findings of all cells once more.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchmemlint.immutable import immutable

if TYPE_CHECKING:
    from torchmemlint.findings import Finding

_NAME = "notebook.ipynb"  # what the program is called where Jupyter does not say
_UNREADABLE = "TML000"  # IPython says itself what it cannot read
_COLOURS = {"error": "#c62828", "warning": "#b26a00", "advice": "#5f6b76"}


@immutable()
class Shown:
    """Findings as a notebook shows them: HTML in a browser, text elsewhere."""

    findings: tuple[tuple[str, Finding], ...]  # each with where it is: "line 3", "In [2], line 3"
    problem: str = ""

    def __repr__(self) -> str:
        return "\n".join(self._texts()) or "torchmemlint: nothing found"

    def _repr_html_(self) -> str:
        parts = [_html(where, finding) for where, finding in self.findings]
        if self.problem or not parts:
            parts.append(f"<div>{escape(repr(self))}</div>")
        return f'<div class="torchmemlint" style="font-size: 90%; line-height: 1.5">{"".join(parts)}</div>'

    def _texts(self) -> Iterator[str]:
        from torchmemlint.report.message import message_of

        if self.problem:
            yield f"torchmemlint: {self.problem}"
        for where, finding in self.findings:
            message = message_of(finding)
            yield f"{where}: {finding.code} {finding.name} ({finding.severity.value}): {message.what}"
            yield from (f"  = {note.line}" for note in message.notes())


def _html(where: str, finding: Finding) -> str:
    from torchmemlint.report.message import message_of

    message = message_of(finding)
    severity = finding.severity.value
    colour = _COLOURS[severity]
    link = f'<a href="{message.url}" target="_blank" rel="noopener">{finding.code} {escape(finding.name)}</a>'
    notes = "".join(f"<div>{_with_code(note.line)}</div>" for note in message.notes(url=False))
    return (
        f'<div style="border-left: 3px solid {colour}; padding: 2px 0 2px 8px; margin: 4px 0">'
        f'<div><b style="color: {colour}">{severity}</b> {link}, {escape(where)}</div>'
        f"<div>{_with_code(message.what)}</div>{notes}</div>"
    )


def _with_code(text: str) -> str:
    """A sentence as HTML, with what stands between backticks as code."""
    parts = enumerate(text.split("`"))
    return "".join(f"<code>{escape(part)}</code>" if number % 2 else escape(part) for number, part in parts)


class Watcher:
    """The cells of a session, and what was said of them."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.sources: dict[str, str] = {}  # by cell; a cell that is run again keeps its place
        self.counts: dict[str, int] = {}  # the number in `In [n]` of its last run
        self.current: str | None = None
        self.said: set[tuple[str, str, str]] = set()

    def before_cell(self, info: Any) -> None:
        """Check a cell that is about to be run, and show what is found."""
        if not info.store_history or not info.raw_cell.strip():
            return  # what a front end asks of the kernel for itself
        key = info.cell_id or f"{len(self.sources)}"
        self.sources[key] = info.raw_cell
        self.counts[key] = self.shell.execution_count  # a guess: versions of IPython differ in when they count
        self.current = key
        self.said = {said for said in self.said if said[0] != key}
        shown = self.findings(key)
        if shown.findings or shown.problem:
            self.show(shown)

    def after_cell(self, result: Any) -> None:
        """Take down the number that a cell was run with."""
        if self.current is not None and result.execution_count is not None:
            self.counts[self.current] = result.execution_count
        self.current = None

    def findings(self, current: str | None = None) -> Shown:
        """The findings of one cell and the new ones of others; without a cell, of all of them."""
        from torchmemlint.api import CheckError, check_source
        from torchmemlint.config.errors import ConfigError

        try:
            found = check_source(_notebook(list(self.sources.values())), path=_path())
        except (CheckError, ConfigError) as error:
            return Shown((), str(error))
        keys = list(self.sources)
        shown: list[tuple[str, Finding]] = []
        for finding in found:
            assert finding.cells is not None
            key = keys[finding.cells.cell(finding.span.start.row) - 1]
            said = key, finding.code, finding.message
            if finding.code == _UNREADABLE or (current is not None and key != current and said in self.said):
                continue
            self.said.add(said)
            line = f"line {finding.cells.within(finding.span.start).row}"
            shown.append((line if key == current else f"In [{self.counts[key]}], {line}", finding))
        return Shown(tuple(shown))

    def show(self, shown: Shown) -> None:
        """Show findings under the cell that is run."""
        from IPython.display import display

        display(shown)  # type: ignore[no-untyped-call]

    def magic(self, line: str) -> Shown | None:
        """`%torchmemlint`: the findings of all cells that were run."""
        if line.strip():
            return Shown((), f"%torchmemlint takes nothing, found {line.strip()!r}")
        return self.findings()


def _path() -> Path:
    """Where the notebook lies, as far as that can be known: it decides the settings and the project's other files."""
    name = Path(os.environ.get("JPY_SESSION_NAME", "")).name
    return Path.cwd() / (name if name.endswith(".ipynb") else _NAME)


def _notebook(cells: Sequence[str]) -> str:
    """The cells as a notebook's text."""
    listed: list[dict[str, object]] = [
        {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": source}
        for source in cells
    ]
    return json.dumps({"cells": listed, "metadata": {}, "nbformat": 4, "nbformat_minor": 4})


_ATTRIBUTE = "_torchmemlint_watcher"


def load_ipython_extension(shell: Any) -> None:
    """Check each cell from now on; IPython calls this for `%load_ext torchmemlint`."""
    if hasattr(shell, _ATTRIBUTE):
        return
    watcher = Watcher(shell)
    setattr(shell, _ATTRIBUTE, watcher)
    shell.events.register("pre_run_cell", watcher.before_cell)
    shell.events.register("post_run_cell", watcher.after_cell)
    shell.register_magic_function(watcher.magic, "line", "torchmemlint")


def unload_ipython_extension(shell: Any) -> None:
    """Check no more cells; IPython calls this for `%unload_ext torchmemlint`."""
    watcher = getattr(shell, _ATTRIBUTE, None)
    if watcher is not None:
        shell.events.unregister("pre_run_cell", watcher.before_cell)
        shell.events.unregister("post_run_cell", watcher.after_cell)
        shell.magics_manager.magics["line"].pop("torchmemlint", None)
        delattr(shell, _ATTRIBUTE)
