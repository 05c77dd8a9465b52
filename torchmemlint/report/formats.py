"""The output formats. A new one is a module in this folder and a line here.

The module has `lines(report, root, paint)`: the report as text, in pieces that end where a line does. Paths are given
as read from `root`, or from the top of the repository where the format's readers need that. Only formats for reading
use `paint`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchmemlint.immutable import immutable

if TYPE_CHECKING:
    from torchmemlint.engine.run import RunReport
    from torchmemlint.report.paint import Paint


@immutable()
class Format:
    """One format: its name, the module in this folder that writes it, and how it gets on with others."""

    name: str
    module: str
    closing: bool = False  # the closing lines of a run follow it
    document: bool = True  # one document from its first character to its last: nothing else may share its stream
    counts: bool = False  # `--statistics` has a form for it
    needs: str = ""  # a package that an extra of the same name as the format brings

    @property
    def lines(self) -> Callable[[RunReport, Path, Paint], Iterator[str]]:
        """The function that writes it. Imported when it is asked for: start-up time is the user's time."""
        module: Any = importlib.import_module(f"torchmemlint.report.{self.module}")
        lines: Callable[[RunReport, Path, Paint], Iterator[str]] = module.lines
        return lines

    @property
    def tally(self) -> Callable[[RunReport], str]:
        """The function that writes the counts of `--statistics`, of a format for programs that has a form for them."""
        module: Any = importlib.import_module(f"torchmemlint.report.{self.module}")
        tally: Callable[[RunReport], str] = module.counts
        return tally

    def missing(self) -> str | None:
        """What to tell a user who lacks the package that it needs; None where nothing is lacking."""
        from importlib.util import find_spec

        if not self.needs or find_spec(self.needs):
            return None
        return f"the format `{self.name}` needs {self.needs}: pip install 'torchmemlint[{self.name}]'"


FORMATS: Mapping[str, Format] = {
    one.name: one
    for one in (
        Format("full", "full", closing=True, document=False, counts=True),
        Format("concise", "concise", closing=True, document=False, counts=True),
        Format("grouped", "grouped", closing=True, document=False, counts=True),
        Format("json", "json_format", counts=True),
        Format("json-lines", "json_lines"),
        Format("json-report", "json_report", counts=True),
        Format("sarif", "sarif.log"),
        Format("github", "github", document=False),
        Format("azure", "azure", document=False),
        Format("gitlab", "gitlab"),
        Format("junit", "junit"),
        Format("pylint", "pylint", document=False),
        Format("rdjson", "rdjson"),
        Format("markdown", "markdown"),
        Format("html", "html.page", needs="jinja2"),
    )
}
