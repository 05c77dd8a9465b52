"""The oldest release of torch that a project says it needs, in what it requires of its surroundings."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from torchmemlint.regular import text_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_QUOTED = re.compile(r"""["']\s*(torch\s*[<>=~!(][^"';]*)["';]""")
_LINE = re.compile(r"^[ \t]*(torch\s*[<>=~!(][^;#]*)", re.MULTILINE)
_BOUND = re.compile(r"(>=|<=|==|~=|<|>|\^)\s*(\d+)\.(\d+)")
_AT_LEAST = frozenset({">=", ">", "==", "~=", "^"})


@lru_cache(maxsize=64)
def oldest_torch(root: Path) -> str | None:
    """ "2.1" for `torch>=2.1,<2.3` and for `torch<2.2`; None where the project names no release, or no torch."""
    for requirement in _requirements(root):
        bounds = [(sign, int(major), int(minor)) for sign, major, minor in _BOUND.findall(requirement)]
        least = [(major, minor) for sign, major, minor in bounds if sign in _AT_LEAST]
        below = [(major, minor - 1) for sign, major, minor in bounds if sign == "<" and minor > 0]
        below += [(major, minor) for sign, major, minor in bounds if sign == "<="]
        if least or below:
            return "{}.{}".format(*(max(least) if least else min(below)))
    return None


def _requirements(root: Path) -> Iterator[str]:
    """`torch>=2.1,<2.3`, from the files in which projects say so."""
    yield from _of_pyproject(_text(root / "pyproject.toml"))
    for name in ("setup.py", "setup.cfg"):
        text = _text(root / name)
        yield from _QUOTED.findall(text)
        yield from _LINE.findall(text)
    yield from _LINE.findall(_text(root / "requirements.txt"))


def _of_pyproject(text: str) -> Iterator[str]:
    if "torch" not in text:
        return
    try:
        contents = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return
    project = contents.get("project")
    listed = project.get("dependencies") if isinstance(project, Mapping) else None
    for line in listed if isinstance(listed, list) else ():
        yield from _LINE.findall(str(line))
    tool = contents.get("tool")
    poetry = tool.get("poetry") if isinstance(tool, Mapping) else None
    named = poetry.get("dependencies") if isinstance(poetry, Mapping) else None
    torch = named.get("torch") if isinstance(named, Mapping) else None
    version = torch.get("version") if isinstance(torch, Mapping) else torch
    if isinstance(version, str):
        yield f"torch{version}"


def _text(path: Path) -> str:
    try:
        return text_of(path)
    except (OSError, UnicodeDecodeError):
        return ""
