"""The oldest release of torch that a project says it needs, in what it requires of its surroundings."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from torchmemlint.immutable import immutable
from torchmemlint.regular import text_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE_NAMES = ("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "environment.yml", "environment.yaml")
# Asked after those, in the order of the alphabet: `requirements-gpu.txt`, `conda_env.yml`, `saint_environment.yml`.
PATTERNS = ("*requirements*.txt", "*env*.yml", "*env*.yaml", "conda*.yml", "conda*.yaml")

_QUOTED = re.compile(r"""["']\s*(torch\s*[<>=~!(][^"';]*)["';]""")
_LINE = re.compile(r"^[ \t]*(torch[ \t]*[<>=~!(][^;#\n]*)", re.MULTILINE)
# An entry of conda's, `pytorch=1.7.1` or `pytorch::pytorch>=1.7`, or of pip's in the same file.
_OF_CONDA = re.compile(r"^[ \t]*-[ \t]*[\"']?(?:[\w-]+::)?(?:py)?(torch[ \t]*[<>=~!][^;#\n\"']*)", re.MULTILINE)
_BOUND = re.compile(r"(>=|<=|==|~=|<|>|\^|(?<!!)=)\s*(\d+)(?:\.(\d+))?")
_LAST_OF_1 = 13  # torch 1.13 came before 2.0
_AT_LEAST = frozenset({">=", ">", "==", "~=", "^", "="})


@immutable()
class Required:
    """The oldest release of torch that a file asks for."""

    release: str  # "2.1"
    file: Path


def required_torch(folder: Path) -> Required | None:
    """What is asked for in a folder: "2.1" for `torch>=2.1,<2.3` and for `torch<2.2`.

    None where its files name no release, or no torch.
    """
    for name in (*FILE_NAMES, *_others(folder)):
        file = folder / name
        release = _oldest(_requirements(file))
        if release is not None:
            return Required(release, file)
    return None


def is_asked(name: str) -> bool:
    """May a file of this name say what a project requires?"""
    return name in FILE_NAMES or _matches(name)


def _others(folder: Path) -> list[str]:
    try:
        return sorted(one.name for one in folder.iterdir() if _matches(one.name) and one.name not in FILE_NAMES)
    except OSError:
        return []


def _matches(name: str) -> bool:
    return name.endswith((".txt", ".yml", ".yaml")) and any(fnmatchcase(name.lower(), one) for one in PATTERNS)


def _oldest(requirements: Iterator[str]) -> str | None:
    for requirement in requirements:
        bounds = [(sign, int(major), int(minor or 0)) for sign, major, minor in _BOUND.findall(requirement)]
        least = [(major, minor) for sign, major, minor in bounds if sign in _AT_LEAST]
        below = [(major, minor - 1) for sign, major, minor in bounds if sign == "<" and minor > 0]
        below += [(1, _LAST_OF_1) for sign, major, minor in bounds if (sign, major, minor) == ("<", 2, 0)]
        below += [(major, minor) for sign, major, minor in bounds if sign == "<="]
        if least or below:
            return "{}.{}".format(*(max(least) if least else min(below)))
    return None


def _requirements(file: Path) -> Iterator[str]:
    """`torch>=2.1,<2.3`, as the kind of file says it."""
    text = _text(file)
    if file.name == "pyproject.toml":
        yield from _of_pyproject(text)
        return
    if file.suffix in (".yml", ".yaml"):
        yield from _OF_CONDA.findall(text)
        return
    if file.suffix != ".txt":
        yield from _QUOTED.findall(text)
    yield from _LINE.findall(text)


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
    required = named.get("torch") if isinstance(named, Mapping) else None
    version = required.get("version") if isinstance(required, Mapping) else required
    if isinstance(version, str):
        yield f"torch{version}"


def _text(path: Path) -> str:
    try:
        return text_of(path)
    except (OSError, UnicodeDecodeError):
        return ""
