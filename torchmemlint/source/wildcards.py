"""File patterns, as git has them, that take no longer than the names are long: whose tree is checked may write any.

What pathspec makes of `*a*a*a*b` tries all ways in which the stars may share a name out. Within one name of a path it
is enough to try the first one, and that is what the expressions here do.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator

from pathspec import GitIgnoreSpec

_MOST = 3  # times that a pattern may cross any folders: each may be shared out in as many ways as the path is deep
_ANY = "[^/]*"
_TOKEN = re.compile(
    r"\(\?:\.\+/\)\?|\(\?:/\.\+\)\?"  # any folders
    r"|\\.|\[\^?\]?(?:\\.|[^\]\\])*\]\*?"  # an escape; one of some letters, or any number of them
    r"|.",
    re.DOTALL,
)


def spec_of(patterns: Iterable[str]) -> GitIgnoreSpec:
    """The patterns, to be matched; raises ValueError for one that is none, or would take for ever."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what Python's expressions may come to mean some day
            spec = GitIgnoreSpec.from_lines(patterns)
    except re.error as problem:  # of letters in brackets, which pathspec passes on as they are: `[?--]`
        raise ValueError(str(problem)) from problem
    for pattern in spec.patterns:
        written = pattern.regex.pattern if pattern.regex is not None else ""
        if written.count(".+") > _MOST:
            raise ValueError(f"more than {_MOST} times `**` in one pattern")
        if written.count(_ANY) > 1:
            pattern.regex = re.compile("".join(_at_once(_TOKEN.findall(written))))
    return spec


def _at_once(tokens: Iterable[str]) -> Iterator[str]:
    """The tokens of an expression, where each `*` but the last of a name takes as little as it can, once for all."""
    number = 0
    since: list[str] | None = None  # a star, and what stands behind it
    for token in tokens:
        if token == _ANY:
            if since is not None and len(since) > 1:
                few = "".join((f"{_ANY}?", *since[1:]))
                yield f"(?=(?P<star{number}>{few}))(?P=star{number})"
                number += 1
            since = [token]
        elif since is None:
            yield token
        elif token == "/" or token.startswith("("):
            yield from (*since, token)
            since = None
        else:
            since.append(token)
    yield from since or ()
