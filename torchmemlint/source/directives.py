"""Suppression comments: what they say and where they stand."""

from __future__ import annotations

import bisect
import contextlib
import enum
import io
import re
import tokenize
from collections.abc import Callable, Collection, Iterator

from torchmemlint.codes import OWN, letters_of
from torchmemlint.findings import Position, Span
from torchmemlint.immutable import immutable

MARKERS = (b"torchmemlint", b"TML")  # a file without torch in it needs a look only if it has one of these

_OPENING = re.compile(r"#[ \t]*(?:torchmemlint[ \t]*:|[nN][oO][qQ][aA]\b)")
_OWN = re.compile(
    r"#[ \t]*torchmemlint[ \t]*:[ \t]*(?P<word>[A-Za-z][\w-]*)(?:[ \t]*(?P<bracket>\[)(?P<codes>[^\]#]*)\]?)?"
)
_NOQA = re.compile(
    r"#[ \t]*noqa(?![\w-])(?:[ \t]*(?P<colon>:)[ \t]*(?P<codes>[A-Z]+[0-9]+(?:[ \t,]+[A-Z]+[0-9]+)*)?)?", re.IGNORECASE
)
_CODE = re.compile(r"[^\s,]+")
_LINE_START = re.compile(r"\r\n|\n|\r")
_LOOK_ALIKES = frozenset(
    """
    disable disable-file disable-line disable-next-line ignored ignores igonre ignore-line ignorefile ignore_file
    ingore noqa off skip skip-file skipfile suppress
    """.split()
)


class Scope(enum.Enum):
    """How far a comment reaches, and in which language it is written."""

    LINE = "ignore"
    FILE = "ignore-file"
    NOQA = "noqa"
    UNKNOWN = "unknown"  # our marker with a word that it does not know


@immutable()
class CodeReference:
    """A code, prefix or rule name as written in a comment."""

    text: str
    span: Span


@immutable()
class Directive:
    """One suppression; `codes` is None where it means every rule."""

    scope: Scope
    word: str
    codes: tuple[CodeReference, ...] | None
    span: Span  # from its `#` to the next `#` of the comment, or the comment's end
    own_line: bool  # nothing but the comment stands on its line
    alone: bool  # it is the whole comment

    @property
    def row(self) -> int:
        """The line that it stands on."""
        return self.span.start.row


def find_directives(
    text: str, rows: Collection[int], letters: Collection[str] = frozenset((OWN,))
) -> tuple[Directive, ...]:
    """The suppression comments of `text` that matter when the findings stand on `rows`.

    `letters` are those that the codes of our rules, or of plugins' rules, begin with. A `noqa` without such a code
    matters only on such a row. Comments are taken from real tokens, and the text is tokenized only if there is
    something in it that could be one of them.
    """
    if not any(_matters(candidate, rows, letters) for candidate in _candidates(text)):
        return ()
    found = [directive for comment in comments(text) for directive in _parse(comment)]
    return tuple(one for one in found if one.scope is not Scope.NOQA or _ours(one, rows, letters))


def _candidates(text: str) -> Iterator[tuple[int, str]]:
    """Row and rest of the line of each place that may open a suppression."""
    starts: list[int] = []
    for match in _OPENING.finditer(text):
        if not starts:
            starts = [0, *(line.end() for line in _LINE_START.finditer(text))]
        row = bisect.bisect_right(starts, match.start())
        end = starts[row] if row < len(starts) else len(text)
        yield row, text[match.start() : end]


def _matters(candidate: tuple[int, str], rows: Collection[int], letters: Collection[str]) -> bool:
    row, rest = candidate
    return row in rows or "torchmemlint" in rest or any(one in rest.upper() for one in letters)


def _ours(directive: Directive, rows: Collection[int], letters: Collection[str]) -> bool:
    if directive.codes is None:
        return directive.row in rows
    return any(
        letters_of(code.text.upper()) in letters or code.text.upper().startswith(OWN) for code in directive.codes
    )


def comments(text: str) -> list[tokenize.TokenInfo]:
    """The comment tokens of `text`, as far as it can be tokenized."""
    found: list[tokenize.TokenInfo] = []
    lines = io.StringIO(text.replace("\r\n", "\n").replace("\r", "\n"))
    with contextlib.suppress(tokenize.TokenError, SyntaxError):  # the parser reports what is wrong with the file
        found.extend(token for token in tokenize.generate_tokens(lines.readline) if token.type == tokenize.COMMENT)
    return found


def _parse(comment: tokenize.TokenInfo) -> Iterator[Directive]:
    row, offset = comment.start
    text = comment.string
    own_line = not comment.line[:offset].strip()
    marks = [index for index, character in enumerate(text) if character == "#"]

    def span(start: int, end: int) -> Span:
        return Span(Position(row, offset + start + 1), Position(row, offset + end + 1))

    for mark in marks:
        end = next((later for later in marks if later > mark), len(text))
        whole = mark == 0 and end == len(text)
        if match := _OWN.match(text, mark):
            word = match["word"].lower()
            scope = {"ignore": Scope.LINE, "ignore-file": Scope.FILE}.get(word, Scope.UNKNOWN)
            if scope is Scope.UNKNOWN and word not in _LOOK_ALIKES and not match["bracket"]:
                continue  # prose that begins with our name
            codes = _references(match, span) if match["bracket"] else None
            yield Directive(scope, match["word"], codes, span(mark, end), own_line, whole)
        elif match := _NOQA.match(text, mark):
            if match["colon"] and not match["codes"]:
                continue  # a colon without codes: other tools read it in different ways
            codes = _references(match, span) if match["codes"] else None
            yield Directive(Scope.NOQA, "noqa", codes, span(mark, end), own_line, whole)


def _references(match: re.Match[str], span: Callable[[int, int], Span]) -> tuple[CodeReference, ...]:
    start = match.start("codes")
    return tuple(
        CodeReference(code.group(), span(start + code.start(), start + code.end()))
        for code in _CODE.finditer(match["codes"] or "")
    )
