"""One decoded text in, the raw findings of the chosen rules out."""

from __future__ import annotations

from pathlib import Path

from torchmemlint.findings import Finding
from torchmemlint.flow.analysis import analyse
from torchmemlint.rules.registry import by_code
from torchmemlint.syntax.source_module import SourceModule


def check_text(text: str, path: Path, codes: frozenset[str]) -> list[Finding]:
    """Findings of the rules in `codes`, before suppressions, in order of position.

    Raises UnreadableFile where the text is not Python 3.
    """
    source = SourceModule(text, path)
    facts = analyse(source)
    rules = by_code()
    found = [finding for code in sorted(codes) for finding in rules[code].check(facts)]
    return sorted(found, key=lambda f: (f.span, f.code))
