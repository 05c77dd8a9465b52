"""Is one of some words part of a program's code, or do only its strings and comments have it?"""

from __future__ import annotations

import re
from functools import lru_cache

_OPENING = re.compile(rb"#|\"\"\"|'''|\"|'")
_CLOSING = {  # what ends a string, or is escaped in it
    b'"""': re.compile(rb'\\.|"""', re.DOTALL),
    b"'''": re.compile(rb"\\.|'''", re.DOTALL),
    b'"': re.compile(rb'\\.|"|\n', re.DOTALL),
    b"'": re.compile(rb"\\.|'|\n", re.DOTALL),
}


def names_one(code: bytes, words: tuple[bytes, ...], *, from_start: bool = False) -> bool:
    """Does one of the words stand in the code, also as part of a name? Where it is imported first, that shows at once.

    `from_start`: a name has to begin with the word. What f-strings compute counts as text. Nothing is said of what is
    no program.
    """
    imported, wanted = _patterns(words, from_start)
    if imported.search(code):
        return True
    position, end = 0, max(code.rfind(word) + len(word) if word in code else 0 for word in words)
    while position < end:
        opening = _OPENING.search(code, position, end)
        if wanted.search(code, position, end if opening is None else opening.start()):
            return True
        if opening is None:
            return False
        position = _end(code, opening)
    return False


def _end(code: bytes, opening: re.Match[bytes]) -> int:
    """Where a comment or string ends."""
    if opening.group() == b"#":
        row_end = code.find(b"\n", opening.end())
        return row_end if row_end >= 0 else len(code)
    for closing in _CLOSING[opening.group()].finditer(code, opening.end()):
        if not closing.group().startswith(b"\\"):
            return closing.end()
    return len(code)


@lru_cache(maxsize=16)
def _patterns(words: tuple[bytes, ...], from_start: bool) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    any_of = b"|".join(map(re.escape, words)) or b"(?!)"
    begun = b"|".join((rb"\b" if word[:1].isalnum() else b"") + re.escape(word) for word in words) or b"(?!)"
    wanted = re.compile(begun if from_start else any_of)
    return re.compile(rb"^(?:import|from) (?:%s)" % any_of, re.MULTILINE), wanted
