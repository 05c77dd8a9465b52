"""A statement as leaves: its tokens, with what a formatter asks of each."""

from __future__ import annotations

import io
import keyword
import tokenize
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torchmemlint.immutable import immutable

OPENING = frozenset("([{")
CLOSING = frozenset(")]}")

# The higher, the earlier a line is broken there.
COMPREHENSION, COMMA, TERNARY, LOGIC, STRING, COMPARISON, DOT = 20, 18, 16, 14, 12, 10, 1
_ARITHMETIC = {
    "|": 9,
    "^": 8,
    "&": 7,
    "<<": 6,
    ">>": 6,
    "+": 5,
    "-": 5,
    "*": 4,
    "/": 4,
    "//": 4,
    "%": 4,
    "@": 4,
    "**": 2,
}
_COMPARING = frozenset({"<", ">", "==", "!=", "<=", ">="})
_OPERAND_ENDS = frozenset({"None", "True", "False", "..."})
_LAYOUT = frozenset({tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER})
_FSTRING = tuple(getattr(tokenize, f"{kind}STRING_{part}", -1) for kind in "FT" for part in ("START", "END"))


@dataclass(eq=False, slots=True)
class Leaf:
    """A token of a statement; one without text is a bracket that may be written, where the statement is broken."""

    text: str
    start: int = -1  # offset in the file's text; -1 of what is not written there
    end: int = -1
    glue: str = ""  # the blanks in front of it, on a line with the token before it
    is_string: bool = False
    opens: bool = False
    closes: bool = False
    before: int = 0  # how early a line is broken in front of it
    depth: int = 0  # brackets around it; the names of a `for`, and of a `lambda`, count as if in brackets
    partner: Leaf | None = None  # of a closing bracket: the one that opens it
    is_display: bool = False  # of an opening bracket: of a list, tuple, set or dict
    is_magic: bool = False  # of a closing bracket: a comma before it keeps its contents on lines of their own

    @property
    def after(self) -> int:
        """How early a line is broken behind it."""
        return COMMA if self.text == "," else 0


@immutable()
class Statement:
    """A logical line: a simple statement or the header of a compound one, as it stands in a text."""

    start: int  # of its first token
    end: int  # of its last, without the comment behind it
    indent: str
    leaves: tuple[Leaf, ...]
    comment: str  # behind it, with the blanks before it
    is_plain: bool  # no comment within, no string over several lines, no `;`, no backslash: it may be laid out anew

    def text(self, of: str) -> str:
        """Its text."""
        return of[self.start : self.end]


def statements(text: str) -> list[Statement]:
    """The statements of a text that Python can read, in order; none where it cannot be divided into tokens.

    Lines end in line feeds.
    """
    found: list[Statement] = []
    starts = [0]
    for line in io.StringIO(text):
        starts.append(starts[-1] + len(line))
    current: list[tokenize.TokenInfo] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.NEWLINE:
                if current:
                    found.append(_statement(current, text, starts))
                current = []
            elif token.type == tokenize.COMMENT:
                if current or (found and _is_behind(text, found[-1].end, starts[token.start[0] - 1] + token.start[1])):
                    current.append(token)
            elif token.type not in _LAYOUT:
                current.append(token)
    except (tokenize.TokenError, SyntaxError):
        return []
    return found


def _is_behind(text: str, end: int, start: int) -> bool:
    return text.find("\n", end, start) < 0


def _statement(tokens: list[tokenize.TokenInfo], text: str, starts: Sequence[int]) -> Statement:
    *comments, comment = ["", *(token.string for token in tokens if token.type == tokenize.COMMENT)]
    code = [token for token in tokens if token.type != tokenize.COMMENT]
    if comment and tokens[-1].type != tokenize.COMMENT:
        comments, comment = [*comments, comment], ""
    offset = [(starts[t.start[0] - 1] + t.start[1], starts[t.end[0] - 1] + t.end[1]) for t in code]
    start, end = offset[0][0], offset[-1][1]
    row = text.rfind("\n", 0, start) + 1
    indent = text[row:start]
    if comment:
        behind = starts[tokens[-1].start[0] - 1] + tokens[-1].start[1]
        comment = text[end:behind] + comment
    whole = text[start:end]
    is_plain = (
        not any(comments) and not indent.strip(" \t") and "\\\n" not in whole and not any(t.string == ";" for t in code)
    )
    is_plain = is_plain and not any("\n" in text[one:other] for one, other in offset)
    leaves = tuple(_leaves(code, offset, text)) if is_plain else ()
    return Statement(start, end, indent, leaves, comment, bool(leaves))


def _leaves(tokens: list[tokenize.TokenInfo], offset: list[tuple[int, int]], text: str) -> Iterator[Leaf]:
    """The tokens as leaves; the parts of a formatted string are one."""
    found: list[Leaf] = []
    nested = 0  # in formatted strings
    for token, (start, end) in zip(tokens, offset, strict=True):
        if nested or token.type in (_FSTRING[0], _FSTRING[2]):
            nested += (token.type in (_FSTRING[0], _FSTRING[2])) - (token.type in (_FSTRING[1], _FSTRING[3]))
            if token.type in (_FSTRING[0], _FSTRING[2]) and nested == 1:
                found.append(Leaf("", start, end, is_string=True))
            found[-1].end = end
            continue
        found.append(Leaf("", start, end, is_string=token.type == tokenize.STRING))
    for before, leaf in zip([None, *found[:-1]], found, strict=True):
        leaf.text = text[leaf.start : leaf.end]
        leaf.opens, leaf.closes = leaf.text in OPENING, leaf.text in CLOSING
        if before is not None:
            gap = text[before.end : leaf.start]
            leaf.glue = gap if "\n" not in gap else _usual_glue(before, leaf)
    _mark(found)
    yield from found


def _usual_glue(before: Leaf, leaf: Leaf) -> str:
    """What stands between two tokens that had a line break between them, once they share a line."""
    is_call = leaf.opens and leaf.text != "{" and _ends_operand(before)
    return "" if before.opens or leaf.closes or leaf.text in (",", ".", ":") or before.text == "." or is_call else " "


def _ends_operand(leaf: Leaf | None) -> bool:
    if leaf is None or leaf.opens:
        return False
    if leaf.closes or leaf.is_string or leaf.text in _OPERAND_ENDS:
        return True
    return (leaf.text.isidentifier() and not keyword.iskeyword(leaf.text)) or leaf.text[:1].isdigit()


def _mark(leaves: list[Leaf]) -> None:
    """Say of each leaf how deep it lies, and how early a line is broken in front of it."""
    opened: list[Leaf] = []
    inner: list[tuple[str, int]] = []  # `for` and `lambda` whose names are not over, with the brackets around them
    in_comprehension: list[bool] = [False]
    before: Leaf | None = None
    for number, leaf in enumerate(leaves):
        following = leaves[number + 1].text if number + 1 < len(leaves) else ""
        is_own = bool(inner) and inner[-1][1] == len(opened)
        ends_names = is_own and (
            (leaf.text == "in" and inner[-1][0] == "for") or (leaf.text == ":" and inner[-1][0] == "lambda")
        )
        if ends_names:
            inner.pop()
        if leaf.closes and opened:
            leaf.partner = opened.pop()
            in_comprehension.pop()
            leaf.is_magic = _is_magic(leaves, number)
        leaf.depth = len(opened) + len(inner)
        if not ends_names:
            leaf.before = _priority(leaf, before, following, in_comprehension[-1])
        if leaf.opens:
            leaf.is_display = not _ends_operand(before)
            opened.append(leaf)
            in_comprehension.append(False)
        elif leaf.text in ("for", "lambda"):
            inner.append((leaf.text, len(opened)))
            in_comprehension[-1] = in_comprehension[-1] or (leaf.text == "for" and bool(opened))
        elif leaf.text == "," and not (inner and inner[-1][1] == len(opened)):
            in_comprehension[-1] = False
        before = leaf


def _priority(leaf: Leaf, before: Leaf | None, following: str, in_comprehension: bool) -> int:
    text = leaf.text
    if before is None:
        return 0
    if text == ".":
        return DOT if before.closes else 0
    if text in _ARITHMETIC:
        return _ARITHMETIC[text] if _ends_operand(before) else 0
    if text in _COMPARING or text == "is":
        return COMPARISON
    if text == "in":
        return COMPARISON if before.text != "not" else 0
    if text == "not":
        return COMPARISON if following == "in" else 0
    if text in ("and", "or"):
        return LOGIC
    if text in ("for", "async"):
        return COMPREHENSION if before.text != "async" else 0
    if text == "if":
        return COMPREHENSION if in_comprehension else TERNARY
    if text == "else":
        return TERNARY
    return STRING if leaf.is_string and before.is_string else 0


def _is_magic(leaves: Sequence[Leaf], number: int) -> bool:
    """Does a comma before this closing bracket ask for a line for each thing in the brackets?"""
    leaf = leaves[number]
    opening = leaf.partner
    if opening is None or leaves[number - 1].text != ",":
        return False
    commas = sum(
        one.text == "," and one.depth == opening.depth + 1 for one in leaves[:number] if one.start > opening.start
    )
    is_tuple_of_one = commas == 1 and opening.text == "(" and opening.is_display
    return not is_tuple_of_one and not (commas == 1 and opening.text == "[" and not opening.is_display)


def width(text: str) -> int:
    """How many columns a text takes."""
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(one) in "WF" else not unicodedata.combining(one) for one in text)
