"""One decoded text in, the raw findings of the chosen rules out."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from torchmemlint.config.contracts import Framework
from torchmemlint.findings import Finding
from torchmemlint.flow.analysis import analyse
from torchmemlint.flow.facts import FileFacts
from torchmemlint.flow.project import Project
from torchmemlint.knowledge.contracts import contracts
from torchmemlint.rules.registry import by_code
from torchmemlint.source.decoding import UnreadableFile
from torchmemlint.syntax.source_module import SourceModule
from torchmemlint.syntax.trees import PARSING

_FRAMES = 8_000  # Python frames: some twenty for each level of nesting that is let in


def check_text(
    text: str,
    path: Path,
    codes: frozenset[str],
    around: Project | None = None,
    *,
    additions: tuple[Framework, ...] = (),
    target: str | None = None,
    pulse: Callable[[], None] | None = None,
) -> list[Finding]:
    """Findings of the rules in `codes`, before suppressions, in order of position.

    `around` gives the context; `additions` are contracts of frameworks besides the linter's own, which count where
    the file stands alone: a project has its own.

    `target` is the oldest torch release that the code supports; None stands for the newest.

    `pulse` is called again and again on the way; what it raises ends the check and is passed on.

    Raises UnreadableFile where the text is not Python 3, or nested too deeply.
    """
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _FRAMES))
    try:
        promised = None if around is not None else contracts(additions)
        source = SourceModule(text, path, trees=PARSING if around is None else around.files.trees)
        facts = analyse(source, around, promised, pulse)
        facts.target_torch = target
        return _findings(facts, codes, around)
    except RecursionError:
        raise UnreadableFile("Nested too deeply to be analysed") from None
    finally:
        sys.setrecursionlimit(limit)


def _findings(facts: FileFacts, codes: frozenset[str], around: Project | None) -> list[Finding]:
    rules = by_code()
    found = [finding for code in sorted(codes) for finding in rules[code].check(facts)]
    found = [finding for finding in found if finding.filename == facts.path]  # the others are their own file's
    facts.program.release()
    if around is not None:
        around.trim()
    return sorted(found, key=lambda f: (f.span, f.code))
