"""Small programs, each with a harmless twin.

A program begins with PRELUDE. A comment `# expect: TML101` stands on the line of a finding. `# instead: text` says what
stands on that line in the harmless twin, of which nothing is reported; on a line by itself it is about the line before.
A program without it has no twin. `# file: name.py` begins another file; what stands before it is `main.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from textwrap import dedent

PRELUDE = """\
import torch
from torch import nn
from torch.nn import functional as F

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)

"""
_EXPECT = re.compile(r"  # expect: (TML\d+(?:, TML\d+)*)")
_INSTEAD = re.compile(r" *# instead: (.*)$", re.MULTILINE)
_FILE = re.compile(r"^# file: ([\w/]+\.py)\n", re.MULTILINE)


@dataclass(frozen=True)
class Program:
    """Files by name, and what is to be found in them as (file, line, code)."""

    name: str
    files: dict[str, str]
    expected: frozenset[tuple[str, int, str]]


def read(name: str, text: str) -> list[Program]:
    """A program, and its twin if it says what stands there instead."""
    text = dedent(text).lstrip("\n")
    written = _program(name, _INSTEAD.sub("", text))
    if _INSTEAD.search(text) is None:
        return [written]
    return [written, _program(f"{name}, harmless", _harmless(text))]


def _harmless(text: str) -> str:
    lines = text.split("\n")
    for number, line in enumerate(lines):
        instead = _INSTEAD.search(line)
        if instead is not None:
            alone = instead.start() == 0
            replaced = lines[number - 1] if alone else line
            lines[number] = ""
            lines[number - alone] = replaced[: len(replaced) - len(replaced.lstrip())] + instead[1]
    return _EXPECT.sub("", "\n".join(lines))


def _program(name: str, text: str) -> Program:
    first, *rest = _FILE.split(text)
    marked = {"main.py": PRELUDE + first, **dict(zip(rest[::2], rest[1::2], strict=True))}
    expected: set[tuple[str, int, str]] = set()
    for file, content in marked.items():
        for number, line in enumerate(content.split("\n"), 1):
            found = _EXPECT.search(line)
            if found is not None:
                expected |= {(file, number, code) for code in found[1].split(", ")}
    files = {file: _EXPECT.sub("", content) for file, content in marked.items()}
    return Program(name, files, frozenset(expected))
