"""Source text of a node, for messages and fixes."""

from __future__ import annotations

import ast
import contextlib
import re
from functools import cache, lru_cache

from torchmemlint.syntax import cst


@cache
def empty() -> cst.Module:
    """A module of nothing."""
    return cst.Module([])


@lru_cache(maxsize=2_048)  # loops, calls and passes come by the same nodes again and again
def text_of(node: cst.CSTNode) -> str:
    """The node's source text on one line, for messages: how it is written, `Piece.written` tells."""
    code = code_of(node)
    if "\n" in code:  # without the comments, and the blanks and commas within brackets
        with contextlib.suppress(SyntaxError):
            code = ast.unparse(ast.parse(f"(\n{code}\n)", mode="eval"))
    return " ".join(code.split())


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


def shortened(text: str, limit: int = 60) -> str:
    """The text, with its middle left out where it is longer than `limit` characters."""
    if len(text) <= limit:
        return text
    return text[: limit * 2 // 3].rstrip() + "…" + text[-(limit // 4) :].lstrip()


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
