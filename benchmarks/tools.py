"""The tools that are compared, and how each is run on a tree."""

from __future__ import annotations

import subprocess
import sys
import venv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from trees import Tree

DEFAULT_RULES = "torchmemlint-default"
_HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Tool:
    """One contestant."""

    name: str
    version: str
    command: Callable[[Tree, Path], Sequence[str]]  # for a tree and a folder for scratch files
    repetitions: int
    statuses: frozenset[int]  # exit statuses of a run that did its work


def ours(repetitions: int, *, all_rules: bool = True) -> Tool:
    """This linter: all rules or those that are on by default, nothing from an earlier run."""
    script = Path(sys.executable).parent / "torchmemlint"
    rules = ("--select", "ALL") if all_rules else ()
    options = (*rules, "--no-cache", "--exit-zero", "--isolated", "--output-format", "concise")
    return Tool(
        "torchmemlint" if all_rules else DEFAULT_RULES,
        _version(Path(sys.executable), "torchmemlint"),
        # The tree is the project whose files are each other's context.
        lambda tree, _: [str(script), "check", *options, "--project-root", str(tree.root), str(tree.root)],
        repetitions,
        frozenset({0}),
    )


def parsing(repetitions: int) -> Tool:
    """One process that reads and parses the files, and no more."""

    def command(tree: Tree, scratch: Path) -> Sequence[str]:
        names = scratch / f"{tree.name}.txt"
        names.write_text("".join(f"{file}\n" for file in tree.files), encoding="utf-8")
        return [sys.executable, str(_HERE / "parse_all.py"), str(names)]

    return Tool("ast.parse", sys.version.split()[0], command, repetitions, frozenset({0}))


def preflight(venvs: Path, repetitions: int) -> Tool:
    """torch-preflight, all rules (its default)."""
    folder = _environment(venvs / "preflight", "torch-preflight==0.5.0")
    return Tool(
        "torch-preflight",
        _version(folder / "python", "torch-preflight"),
        lambda tree, _: [str(folder / "torch-preflight"), "check", str(tree.root)],
        repetitions,
        frozenset({0, 1}),
    )


def torchfix(venvs: Path, repetitions: int) -> Tool:
    """torchfix, all rules, with as many processes as it likes."""
    folder = _environment(venvs / "torchfix", "torchfix==0.7.0")
    return Tool(
        "torchfix",
        _version(folder / "python", "torchfix"),
        lambda tree, _: [str(folder / "torchfix"), "--select", "ALL", str(tree.root)],
        repetitions,
        frozenset({0, 1}),
    )


def _environment(folder: Path, requirement: str) -> Path:
    """The `bin` of a virtual environment with one tool in it; made where it is not there yet."""
    programs = folder / "bin"
    if not (programs / requirement.partition("==")[0]).exists():
        venv.create(folder, with_pip=True)
        pip = [str(programs / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, requirement], check=True)
    return programs


def _version(python: Path, package: str) -> str:
    code = f"import importlib.metadata; print(importlib.metadata.version({package!r}))"
    return subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=True).stdout.strip()
