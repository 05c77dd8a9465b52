"""Source text of a node, for messages and fixes."""

from __future__ import annotations

import ast
import contextlib
import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache

from torchmemlint.syntax import cst, standard


@cache
def empty() -> cst.Module:
    """A module of nothing."""
    return cst.Module([])


@lru_cache(maxsize=2_048)  # loops, calls and passes come by the same nodes again and again
def text_of(node: cst.CSTNode) -> str:
    """The node's source text on one line, for messages: how it is written, `Piece.written` tells."""
    return one_line(code_of(node))


def code_of(node: cst.CSTNode) -> str:
    """The node's source text, with the blanks and brackets that it has: that of a tree made elsewhere, with few."""
    plain = _chain(node)
    return plain if plain is not None else empty().code_for_node(node)


def _chain(node: cst.CSTNode) -> str | None:
    """The text of a name or attribute chain without blanks, comments or parentheses; None of anything else."""
    names: list[str] = []
    while type(node) is cst.Attribute:  # `isinstance` is slow on these classes where the answer is no
        dot = node.dot
        if node.lpar or node.attr.lpar or not _is_bare(dot.whitespace_before) or not _is_bare(dot.whitespace_after):
            return None
        names.append(node.attr.value)
        node = node.value
    if type(node) is not cst.Name or (names and node.lpar):
        return None
    names.append(node.value)
    return ".".join(reversed(names))


def _is_bare(blank: cst.BaseParenthesizableWhitespace) -> bool:
    return isinstance(blank, cst.SimpleWhitespace) and not blank.value


def characters(line: str, column: int) -> int:
    """How many characters stand before a column that counts bytes of UTF-8, as those of the standard parser do."""
    return column if line.isascii() else len(line.encode("utf-8", "surrogatepass")[:column].decode("utf-8", "replace"))


def is_explained(rows: Sequence[str], row: int, word: str) -> bool:
    """Does a comment on a row (from 1), or in those right above it, speak of a word?"""
    _, _, comment = rows[row - 1].partition("#")
    while word not in comment.lower() and row > 1 and rows[row - 2].lstrip().startswith("#"):
        row -= 1
        comment = rows[row - 1]
    return word in comment.lower()


_LEFT_OUT = "…"
_PARTS = re.compile(r"""(['"])(?:\\.|(?!\1).)*\1|[(\[{]|[)\]}]""")  # texts, and what brackets begin and end with
_LEAST = 4  # characters within brackets that are left out


def one_line(code: str) -> str:
    """Code on one line; of an expression over several lines without comments, and blanks and commas within brackets."""
    if "\n" in code:
        with contextlib.suppress(SyntaxError):
            code = ast.unparse(standard.expression(f"\n{code}\n"))
    return " ".join(code.split())


def shortened(text: str, limit: int = 60) -> str:
    """Code on one line of about `limit` characters: what is within brackets is left out first, the longest first.

    Names stay whole: what is left may be half as long again.
    """
    text = one_line(text)
    while len(text) > limit:
        inside = max(_insides(text), key=lambda inside: inside[1] - inside[0], default=(0, 0))
        if inside[1] - inside[0] < _LEAST:
            break
        text = text[: inside[0]] + _LEFT_OUT + text[inside[1] :]
    if len(text) <= limit * 3 // 2:
        return text
    head, tail = text[: limit * 2 // 3], text[-(limit // 4) :]
    return (re.sub(r"\w+$", "", head).rstrip() or head) + _LEFT_OUT + (re.sub(r"^\w+", "", tail).lstrip() or tail)


def _insides(text: str) -> Iterator[tuple[int, int]]:
    """Where the outermost brackets of code begin and end, without themselves."""
    begun: list[int] = []
    for part in _PARTS.finditer(text):
        if part[0] in "([{":
            begun.append(part.end())
        elif part[0] in ")]}" and begun:
            start = begun.pop()
            if not begun:
                yield start, part.start()


_FED = re.compile(r"^[ \t\f]*\f", re.MULTILINE)


def without_form_feeds(text: str) -> str:
    """The text without form feeds in front of its rows, and without the blanks before them, which indent nothing.

    Python counts blanks anew behind a form feed; libcst takes it for a part of the indentation.
    """
    return _FED.sub("", text) if "\f" in text else text


def parse_with_libcst(text: str) -> cst.Module:
    """libcst's tree of a text, form feeds taken away; raises what libcst raises."""
    return cst.parse_module(without_form_feeds(text))


def form_feeds(text: str) -> dict[int, int]:
    """How many characters that takes away, by row (from 1) of a text whose rows end with line feeds."""
    if "\f" not in text:
        return {}
    found = ((row, _FED.match(line)) for row, line in enumerate(text.split("\n"), 1))
    return {row: match.end() for row, match in found if match is not None}
