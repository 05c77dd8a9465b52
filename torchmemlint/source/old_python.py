"""Does a file that does not parse look like Python 2, or like a Python 3 in which `async` was a name like any other?"""

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
            r"(?<![\w.])(?<![eE][-+])0(?=[0-7]*[1-7])[0-7]+(?![\w.])",
            r"(?<![\w.])(?:0[xX][0-9a-fA-F]+|[0-9]+)[lL]\b",
            r"\w[ \t]*<>[ \t]*\w",
            r"\b[uU][rR](?=[\"'])",
            r"^[ \t]*def[ \t]+\w+[ \t]*\([^()\r\n]*\([ \t]*\w+[ \t]*,",
        )
    ),
    re.MULTILINE,
)
# A keyword since Python 3.7; until torch 0.4 the way to copy in the background was `x.cuda(async=True)`.
_NAMED_ASYNC = re.compile(r"[(,]\s*async\s*=(?!=)|\.async\b")


def old_python(text: str) -> str:
    """The Python that `text`, which today's cannot read, looks like outside strings and comments; "" for none."""
    code = _SKIPPED.sub(_blank, text)
    if _SIGNS.search(code) is not None:
        return "Python 2"
    return "Python 3.6" if _NAMED_ASYNC.search(code) is not None else ""


def _blank(match: re.Match[str]) -> str:
    found = match.group()
    return "" if found.startswith("#") else '"' + "\n" * found.count("\n") + '"'
