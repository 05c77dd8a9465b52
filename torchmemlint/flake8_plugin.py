"""torchmemlint in flake8, for those who are bound to it; described in `docs/flake8.md`.

It is off by default, which for flake8 means that it is not even imported without `enable-extensions = TML`: whoever has
installed torchmemlint beside flake8 has not asked for a second run of it, which takes a while.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from torchmemlint import __version__

if TYPE_CHECKING:
    from torchmemlint.config.resolver import Resolver

_STANDARD_INPUT = frozenset(("stdin", "-", ""))


class Plugin:
    """What flake8 makes for each file and runs."""

    name: ClassVar[str] = "torchmemlint"
    version: ClassVar[str] = __version__
    off_by_default: ClassVar[bool] = True

    _noqa: ClassVar[bool] = True
    _resolver: ClassVar[Resolver | None] = None

    def __init__(self, tree: ast.AST, filename: str, lines: Sequence[str]) -> None:
        del tree  # flake8 has it at hand; the analysis needs the text
        self._filename = filename
        self._lines = lines

    @classmethod
    def parse_options(cls, options: Any) -> None:
        """Take in what flake8's options say."""
        cls._noqa = not options.disable_noqa
        cls._resolver = None

    def run(self) -> Iterator[tuple[int, int, str, type[Plugin]]]:
        """Yield (row, column from 0, text, plugin) for what is found in the file."""
        from torchmemlint.engine.one_file import check_source, is_concerned, is_relevant
        from torchmemlint.engine.runner import profile_for
        from torchmemlint.report.message import message_of
        from torchmemlint.source.discovery import is_excluded

        path = Path(self._filename).absolute()
        resolver = self._settings()
        if self._filename not in _STANDARD_INPUT and is_excluded(path, resolver.settings_for):
            return
        profile = replace(profile_for(resolver.settings_for(path.parent), path), noqa=self._noqa)
        text = "".join(self._lines)
        data = text.encode("utf-8", "surrogatepass")
        relevant = is_relevant(data, profile.contracts) or is_concerned(data, path, profile)
        for finding in check_source(text, path, profile, relevant=relevant):
            start = finding.span.start
            text = " ".join((finding.message, *message_of(finding).asides))
            yield start.row, start.column - 1, f"{finding.code} {text}", type(self)

    @classmethod
    def _settings(cls) -> Resolver:
        if cls._resolver is None:
            from torchmemlint.config.resolver import Resolver

            cls._resolver = Resolver(Path.cwd())
        return cls._resolver
