"""A git repository of old code, made of the fixtures, and what people do to such code."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from torchmemlint.cli.main import main

FIXTURES = Path(__file__).parents[2] / "fixtures"


class Repository:
    """A folder under version control."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(exist_ok=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str) -> str:
        who = ("-c", "user.name=A", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
        done = subprocess.run(("git", *who, *arguments), cwd=self.root, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def commit(self, message: str = "work") -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def add_old_code(self) -> None:
        """The fixtures with findings, each rule's in a folder of its own."""
        leave_out = shutil.ignore_patterns("*.fixed.py", "good_*", "__pycache__")
        for folder in sorted(path for path in FIXTURES.iterdir() if path.is_dir()):
            shutil.copytree(folder, self.root / "src" / folder.name.replace("-", "_"), ignore=leave_out)

    def format(self, *options: str) -> None:
        subprocess.run((sys.executable, "-m", "ruff", "format", "--isolated", "-q", *options, self.root), check=True)


def findings(*arguments: str) -> list[dict[str, Any]]:
    """What `check` reports from the working directory."""
    out = Path("report.json")
    code = main(("check", "--output-format=json", f"--output-file={out}", "--fail-on=advice", "-q", *arguments))
    found: list[dict[str, Any]] = json.loads(out.read_text())
    out.unlink()
    assert code == bool(found)
    return found


def turn_around(path: Path) -> None:
    """Put functions, and methods, that follow each other into the opposite order."""
    text = path.read_text()
    lines = text.splitlines(keepends=True)
    tree = ast.parse(text)
    bodies = [tree.body, *(statement.body for statement in tree.body if isinstance(statement, ast.ClassDef))]
    runs = [run for body in bodies for run in _runs(body) if len(run) > 1]
    for run in sorted(runs, key=lambda run: -_first(run[0])):
        parts = ["".join(lines[_first(one) - 1 : one.end_lineno]).rstrip("\n") + "\n" for one in run]
        lines[_first(run[0]) - 1 : run[-1].end_lineno] = ["\n".join(reversed(parts))]
    path.write_text("".join(lines))


def _runs(body: list[ast.stmt]) -> list[list[ast.stmt]]:
    runs: list[list[ast.stmt]] = [[]]
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            runs[-1].append(statement)
        else:
            runs.append([])
    return runs


def _first(statement: Any) -> int:
    return min([statement.lineno, *(decorator.lineno for decorator in statement.decorator_list)])
