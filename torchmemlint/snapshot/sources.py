"""The files here that a snapshot's paths mean, which another machine may have written; what the linter says of them.

A path means the file that shares its longest end, where one file alone does. That the file has not changed since is
checked by the functions that the frames name: line 12 must still be in `forward`.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from torchmemlint.findings import Finding, Span
from torchmemlint.immutable import immutable
from torchmemlint.rules import registry
from torchmemlint.runtime.ledger import Site
from torchmemlint.snapshot.callers import is_users_file, normal
from torchmemlint.snapshot.records import Frame
from torchmemlint.source.decoding import UnreadableFile
from torchmemlint.source.loading import load

_OF_THE_HOST = "loading"  # the family of rules about batches on their way, which cost no GPU memory
_LEAST_SHARED = 2  # parts of a path in an installed package that must agree
_HIDDEN_FUNCTIONS = ("<module>", "<lambda>", "<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>")


@immutable()
class Sources:
    """The local files that a snapshot's paths mean.

    `changed` are those that are not as they were when they ran; `ambiguous` are paths that several files may be, and
    `absent` those of the user that none is.
    """

    local: Mapping[str, Path]
    changed: tuple[Path, ...] = ()
    ambiguous: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()

    def is_users(self, path: str) -> bool:
        """Whether a file is the user's."""
        return path in self.local or is_users_file(path)

    def place(self, site: Site) -> Site:
        """The same line in the file here."""
        found = self.local.get(site.path)
        return site if found is None else Site(str(found), site.line, site.function)


NO_SOURCES = Sources({})


def find_sources(frames: Iterable[Frame], files: Iterable[Path]) -> Sources:
    """Match the paths of frames with files."""
    by_name: defaultdict[str, list[Path]] = defaultdict(list)
    for file in files:
        by_name[file.name].append(file)
    seen: defaultdict[str, set[tuple[int, str]]] = defaultdict(set)
    for frame in frames:
        if frame.python:
            seen[normal(frame.filename)].add((frame.line, frame.name))
    local: dict[str, Path] = {}
    changed, ambiguous, absent = [], [], []
    for path, lines in seen.items():
        best = _best(path, by_name.get(PurePosixPath(path).name, ()))
        if len(best) > 1:
            ambiguous.append(path)
        elif best:
            local[path] = best[0]
            if not _fits(best[0], lines):
                changed.append(best[0])
        elif is_users_file(path):
            absent.append(path)
    return Sources(local, tuple(changed), tuple(ambiguous), tuple(absent))


def _best(path: str, files: Iterable[Path]) -> list[Path]:
    """The files with which a path shares most of its end; none where that is too little."""
    parts = PurePosixPath(path).parts[::-1]
    shared = {file: _shared(parts, file.parts[::-1]) for file in files}
    most = max(shared.values(), default=0)
    if most < (1 if is_users_file(path) else _LEAST_SHARED):
        return []
    return [file for file, count in shared.items() if count == most]


def _shared(one: tuple[str, ...], other: tuple[str, ...]) -> int:
    return next((count for count, (left, right) in enumerate(zip(one, other, strict=False)) if left != right), len(one))


def _fits(file: Path, lines: Iterable[tuple[int, str]]) -> bool:
    """Whether the functions that frames name are at these lines of a file."""
    try:
        tree = ast.parse(load(file.read_bytes(), file).text)
    except (UnreadableFile, OSError, SyntaxError, ValueError):
        return True  # nothing speaks against it
    spans = [
        (node.name, min([node.lineno, *(one.lineno for one in node.decorator_list)]), node.end_lineno or node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    ]
    return all(
        name.rpartition(".")[2] in _HIDDEN_FUNCTIONS
        or any(name.rpartition(".")[2] == known and first <= line <= last for known, first, last in spans)
        for line, name in lines
    )


def of_gpu_memory(finding: Finding) -> bool:
    """Whether a finding is about the memory of a GPU: those about how batches get there are not."""
    rule = registry.by_code().get(finding.code)
    return rule is None or rule.page is None or rule.page.parent.name != _OF_THE_HOST


class Explanations:
    """Which findings speak of which lines."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self._here: defaultdict[tuple[Path, int], dict[Finding, None]] = defaultdict(dict)
        self._beside: defaultdict[tuple[Path, int], dict[Finding, None]] = defaultdict(dict)
        for finding in findings:
            if not of_gpu_memory(finding):
                continue
            for place in _rows(finding.filename, (finding.span, finding.statement)):
                self._here[place][finding] = None
            for evidence in finding.evidence:
                file = evidence.filename or finding.filename
                if file != finding.filename or not evidence.span.contains(finding.span):  # no loop around it
                    for place in _rows(file, (evidence.span,)):
                        self._beside[place][finding] = None

    def at(self, site: Site, *, values: bool = True) -> list[Finding]:
        """Those whose statement a line of a file here lies in; else those that name it as evidence.

        Without `values`, what the line allocated is none of the program's own values (a gradient, an optimizer's
        state), and evidence tells nothing of it.
        """
        place = (Path(site.path), site.line)
        return list(self._here.get(place) or (self._beside.get(place) if values else None) or ())

    def above(self, lines: Iterable[Site]) -> list[Finding]:
        """Those whose statement called what allocated, the innermost first."""
        found: dict[Finding, None] = {}
        for site in lines:
            found |= self._here.get((Path(site.path), site.line), {})
        return list(found)


def _rows(file: Path, spans: Iterable[Span]) -> Iterator[tuple[Path, int]]:
    rows = {row for span in spans for row in range(span.start.row, span.end.row + 1)}
    yield from ((file, row) for row in sorted(rows))
