"""Which versions of this program a configuration asks for."""

from __future__ import annotations

import re

_NUMBERS = r"[0-9]+(?:\.[0-9]+)*"
_SPECIFIER = rf"(?:(?:===?|!=|>=|<=|>|<)? *{_NUMBERS}|(?:==|!=) *{_NUMBERS}\.\*|~= *{_NUMBERS}\.[0-9]+)"
SPECIFIERS = rf" *{_SPECIFIER} *(?:, *{_SPECIFIER} *)*"
_ONE = re.compile(r"(?P<sign>[=!<>~]*) *(?P<version>[0-9.]+)(?P<any>\*)?")


def satisfies(version: str, specifiers: str) -> bool:
    """Whether a version such as `0.1.0` is one of those that specifiers, as `required_version` reads them, ask for.

    They mean what they mean in requirements (PEP 440), but for what follows the numbers of a release.
    """
    numbers = re.match(_NUMBERS, version)
    release = _release(numbers[0] if numbers is not None else "0")
    return all(_satisfies(release, one) for one in specifiers.split(","))


def _satisfies(release: tuple[int, ...], specifier: str) -> bool:
    found = _ONE.match(specifier.strip())
    assert found is not None
    sign, begins = found["sign"] or "==", bool(found["any"])
    wanted = _release(found["version"].rstrip("."))
    if sign == "~=":
        return (
            _padded(release, len(wanted)) >= wanted and _padded(release, len(wanted))[: len(wanted) - 1] == wanted[:-1]
        )
    length = len(wanted) if begins else max(len(release), len(wanted))
    ours, theirs = _padded(release, length)[:length], _padded(wanted, length)
    return {
        "==": ours == theirs,
        "===": ours == theirs,
        "!=": ours != theirs,
        ">=": ours >= theirs,
        "<=": ours <= theirs,
        ">": ours > theirs,
        "<": ours < theirs,
    }[sign]


def _release(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def _padded(release: tuple[int, ...], length: int) -> tuple[int, ...]:
    return release + (0,) * (length - len(release))
