"""One decoded text in, the raw findings of the chosen rules out."""

from __future__ import annotations

import sys
from pathlib import Path

from torchmemlint.findings import Finding
from torchmemlint.flow.analysis import analyse
from torchmemlint.flow.project import Project
from torchmemlint.rules.registry import by_code
from torchmemlint.source.decoding import UnreadableFile
from torchmemlint.syntax.source_module import SourceModule

_FRAMES = 8_000  # Python frames: some twenty for each level of nesting that is let in


def check_text(
    text: str, path: Path, codes: frozenset[str], around: Project | None = None, *, target: str | None = None
) -> list[Finding]:
    """Findings of the rules in `codes`, before suppressions, in order of position; `around` gives the context.

    `target` is the oldest torch release that the code supports; None stands for the newest.

    Raises UnreadableFile where the text is not Python 3, or nested too deeply.
    """
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _FRAMES))
    try:
        return _findings(SourceModule(text, path), codes, around, target)
    except RecursionError:
        raise UnreadableFile("Nested too deeply to be analysed") from None
    finally:
        sys.setrecursionlimit(limit)


def _findings(source: SourceModule, codes: frozenset[str], around: Project | None, target: str | None) -> list[Finding]:
    facts = analyse(source, around)
    facts.target_torch = target
    rules = by_code()
    found = [finding for code in sorted(codes) for finding in rules[code].check(facts)]
    found = [finding for finding in found if finding.filename == source.path]  # the others are their own file's
    facts.program.release()
    if around is not None:
        around.trim()
    return sorted(found, key=lambda f: (f.span, f.code))
