"""Does a file that does not parse look like Python 2?"""

from __future__ import annotations

import re

_SKIPPED = re.compile(
    r"""(?P<triple>\"{3}|'{3})(?:\\.|[^\\])*?(?P=triple)   # strings, so that prose in them proves nothing
      | "(?:\\.|[^"\\\r\n])*" | '(?:\\.|[^'\\\r\n])*'
      | \#[^\r\n]*""",
    re.VERBOSE | re.DOTALL,
)
_START = r"(?:^|[;:])[ \t]*"
_SIGNS = re.compile(
    "|".join(
        (
            _START + r"print(?:[ \t]*>>|[ \t]+(?![=.(\[,:]|in\b|is\b|if\b|and\b|or\b|not\b)\S)",
            _START + r"exec[ \t]+(?![=.(\[,:]|in\b|is\b|if\b|and\b|or\b|not\b)\S",
            r"^[ \t]*except[ \t]+[^\r\n:]+,[ \t]*[a-z_]\w*[ \t]*:",
            _START + r"raise[ \t]+[A-Za-z_][\w.]*[ \t]*,",
            r"`[^`\r\n]+`",
            r"(?<![\w.])0(?=[0-7]*[1-7])[0-7]+(?![\w.])",
            r"(?<![\w.])(?:0[xX][0-9a-fA-F]+|[0-9]+)[lL]\b",
            r"\w[ \t]*<>[ \t]*\w",
            r"\b[uU][rR](?=[\"'])",
            r"^[ \t]*def[ \t]+\w+[ \t]*\([^()\r\n]*\([ \t]*\w+[ \t]*,",
        )
    ),
    re.MULTILINE,
)


def looks_like_python2(text: str) -> bool:
    """Whether `text`, which is not valid Python 3, has the syntax of Python 2 outside strings and comments."""
    return _SIGNS.search(_SKIPPED.sub(_blank, text)) is not None


def _blank(match: re.Match[str]) -> str:
    found = match.group()
    return "" if found.startswith("#") else '"' + "\n" * found.count("\n") + '"'
