"""Run every command of a document's `bash` and `console` blocks, in the way a reader would.

They run in order in one shell, in a copy of the repository and a new virtual environment, so that nothing here
changes and nothing installed here helps. A command fails by its exit status, except that `torchmemlint` may give 1,
which says that it found something. In `console` blocks the lines after `$ ` are commands, the others their output.
A block below the comment `<!-- not run: reason -->` is left out.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from pathlib import Path

_BLOCK = re.compile(
    r"^(?P<left_out><!-- not run: [^\n]+ -->\n+)?"
    r"(?P<fence>```+)(?P<kind>bash|console)[^\n]*\n(?P<text>.*?)^(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)
_IGNORED = shutil.ignore_patterns(
    ".git", "__pycache__", "*.egg-info", ".*_cache", ".venv", ".hypothesis", "build", "dist", "out", "node_modules"
)

# What the reader of a page has: a repository whose branch is that of its origin.
COMMIT = """\
git init --quiet
git add --all
git -c user.name=Reader -c user.email=reader@example.org commit --quiet --message=All
git update-ref refs/remotes/origin/main HEAD
"""


def commands(document: str) -> Iterator[str]:
    """The commands of a Markdown text, each with the lines that continue it."""
    for block in _BLOCK.finditer(document):
        if block["left_out"]:
            continue
        pending: list[str] = []
        for line in block["text"].splitlines():
            if block["kind"] == "console" and not pending:
                if not line.startswith("$ "):
                    continue
                line = line[2:]
            elif block["kind"] == "console":
                line = line.removeprefix("> ")
            if not pending and (not line.strip() or line.lstrip().startswith("#")):
                continue
            pending.append(line)
            if _complete("\n".join(pending)):
                yield "\n".join(pending)
                pending = []
        if pending:
            raise ValueError(f"a command does not end: {pending[0]}")


def _complete(text: str) -> bool:
    """Whether the shell would wait for no further line."""
    if text.endswith("\\"):
        return False
    return subprocess.run(["bash", "-n", "-c", text], capture_output=True, check=False).returncode == 0


def script(found: list[str]) -> str:
    """A shell script that runs the commands and stops at the first one that fails."""
    lines = [
        "judge() {",
        '    if [ "$1" -eq 0 ] || { [ "$1" -eq 1 ] && [[ "$2" == *torchmemlint* ]]; }; then return; fi',
        '    printf "README command failed with %s: %s\\n" "$1" "$2" >&2',
        "    exit 1",
        "}",
    ]
    for command in found:
        quoted = "'" + command.replace("'", "'\\''") + "'"
        lines += [f"printf '$ %s\\n' {quoted}", command, f"judge $? {quoted}"]
    return "\n".join(lines) + "\n"


def repository(document: Path) -> Path:
    """The folder that a document's reader stands in: the nearest one above it that holds a project."""
    return next(folder for folder in document.resolve().parents if (folder / "pyproject.toml").is_file())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "documents", type=Path, nargs="+", metavar="document", help="in a repository, where its commands are run"
    )
    parser.add_argument(
        "--folder", type=Path, help="a folder of the repository whose copy, elsewhere, is the project that it speaks of"
    )
    parser.add_argument(
        "--install", metavar="EXTRAS", nargs="?", const="", help="install the repository first, as another page says"
    )
    parser.add_argument("--skip", action="append", default=[], metavar="TEXT", help="leave out commands with this text")
    parser.add_argument(
        "--require", action="append", default=[], metavar="TEXT", help="fail if no command has this text"
    )
    options = parser.parse_args()
    found = {document: list(commands(document.read_text(encoding="utf-8"))) for document in options.documents}
    for wanted in options.require:
        if not any(wanted in command for several in found.values() for command in several):
            print(f"no command has `{wanted}`", file=sys.stderr)
            return 1
    with tempfile.TemporaryDirectory() as folder:
        copy, environment = Path(folder, "repository"), Path(folder, "venv")
        shutil.copytree(repository(options.documents[0]), copy, ignore=_IGNORED)
        venv.create(environment, with_pip=True)
        variables = {**os.environ, "VIRTUAL_ENV": str(environment)}
        variables["PATH"] = f"{environment / 'bin'}{os.pathsep}{os.environ['PATH']}"
        variables.pop("PYTHONPATH", None)
        if options.install is not None:
            extras = f"[{options.install}]" if options.install else ""
            subprocess.run(["pip", "install", "--quiet", f"{copy}{extras}"], env=variables, check=True)
        for document, all_of_it in found.items():
            chosen = [command for command in all_of_it if not any(text in command for text in options.skip)]
            if not chosen:
                continue
            project = copy
            if options.folder is not None:
                project = shutil.copytree(copy / options.folder, Path(folder, f"project-{document.stem}"))
                subprocess.run(["bash", "-e", "-c", COMMIT], cwd=project, check=True)
            began = time.monotonic()
            done = subprocess.run(["bash", "-c", script(chosen)], cwd=project, env=variables, check=False)
            took = time.monotonic() - began
            print(f"{document}: {len(chosen)} of {len(all_of_it)} commands run in {took:.0f} s", flush=True)
            if done.returncode != 0:
                return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
