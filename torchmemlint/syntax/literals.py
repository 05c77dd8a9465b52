"""String literals as they are written, taken apart without a parser: several in a row, and the fields of f-strings.

The standard parser joins what stands in a row, and up to Python 3.11 it does not tell for certain where in an f-string
something stands.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

from torchmemlint.immutable import immutable

_BETWEEN = re.compile(r"(?:[ \t\f\n]|\\\n|#[^\n]*)*")
_LITERAL = re.compile(
    r"""(?P<start>(?P<prefix>[a-zA-Z]{0,2})(?P<quotes>'''|\"""|'|"))(?P<content>(?:[^\\]|\\.)*?)(?P=quotes)""",
    re.DOTALL,
)
_PART = re.compile(
    r"(?P<text>(?:[^{}\\]|\{\{|\}\}|\\[^{}N])+)"
    r"|\{(?P<expression>[^{}'\"!:=\\#\n]+)(?:!(?P<conversion>[rsa]))?(?P<spec>:[^{}'\"\\\n]*)?\}",
    re.DOTALL,
)


@immutable()
class Field:
    """What stands in braces."""

    expression: str
    conversion: str | None
    spec: str | None  # without the colon


@immutable()
class Formatted:
    """An f-string: text as it is written, and fields."""

    start: str  # the prefix with the quotes
    parts: Sequence[str | Field]
    end: str  # the quotes


Literal: TypeAlias = str | Formatted  # of one that is no f-string the text


def literals(text: str) -> list[Literal] | None:
    """Those that stand in a row there; None where more stands in their fields than is told apart here.

    That may be too little: where a field has colons or braces of its own, its expression is none.
    """
    found: list[Literal] = []
    at = 0
    while at < len(text):
        literal = _LITERAL.match(text, at)
        if literal is None:
            return None
        if "f" in literal["prefix"].lower():
            parts = _parts(literal["content"])
            if parts is None:
                return None
            found.append(Formatted(literal["start"], parts, literal["quotes"]))
        else:
            found.append(literal.group())
        between = _BETWEEN.match(text, literal.end())
        at = literal.end() if between is None else between.end()
    return found


def _parts(content: str) -> list[str | Field] | None:
    found: list[str | Field] = []
    at = 0
    while at < len(content):
        part = _PART.match(content, at)
        if part is None:
            return None
        spec = part["spec"]
        if part["text"] is not None:
            found.append(part["text"])
        else:
            found.append(Field(part["expression"], part["conversion"], None if spec is None else spec[1:]))
        at = part.end()
    return found
