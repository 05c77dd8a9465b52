"""What the tests of editors share: a project, a `torchmemlint` on the PATH, and editors if this machine has them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib import util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EDITORS = ROOT / "editors"
HERE = Path(__file__).resolve().parent
PROGRAM = EDITORS / "example" / "train.py"
FIXED = "running_loss += loss.detach()"
FIXED_ALL = "@torch.no_grad()\ndef accuracy("

needs_server = pytest.mark.skipif(
    util.find_spec("pygls") is None, reason="pygls is not installed: pip install 'torchmemlint[lsp]'"
)


def editor(name: str, package: str) -> str:
    """The path of an editor, which NVIM_PROGRAM and the like may name; the test is skipped where there is none."""
    path = shutil.which(os.environ.get(f"{name.upper()}_PROGRAM", name))
    if path is None:
        pytest.skip(
            f"{name} is not installed (apt-get install {package}, or name one with {name.upper()}_PROGRAM=PATH)"
        )
    return path


def version_of(path: str) -> tuple[int, int]:
    """The version that an editor tells."""
    import re

    said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=30).stdout
    found = re.search(r"(\d+)\.(\d+)", said)
    assert found, said
    return int(found[1]), int(found[2])


def make_project(folder: Path) -> Path:
    """A project with one program; gives the program's path."""
    folder.mkdir()
    (folder / "pyproject.toml").write_text("[project]\nname = 'example'\nversion = '1'\n")
    program = folder / "train.py"
    shutil.copyfile(PROGRAM, program)
    return program


def environment(folder: Path, **more: str) -> dict[str, str]:
    """The environment of an editor: its own home, and this interpreter's `torchmemlint` first on the PATH."""
    commands = folder / "bin"
    commands.mkdir()
    command = commands / "torchmemlint"
    code = "import sys; from torchmemlint.cli.main import main; sys.exit(main())"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{code}" "$@"\n')
    command.chmod(0o755)
    home = folder / "home"
    home.mkdir()
    return {
        **os.environ,
        "PATH": f"{commands}{os.pathsep}{os.environ.get('PATH', '')}",
        "PYTHONPATH": str(ROOT),
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "XDG_DATA_HOME": str(home / ".local" / "share"),
        "XDG_STATE_HOME": str(home / ".local" / "state"),
        **more,
    }
