"""Programs from the npm registry that read or write the output formats; `npm ci` in this folder brings them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
MODULES = FOLDER / "node_modules"
NODE = shutil.which("node")

needs_packages = pytest.mark.skipif(
    NODE is None or not MODULES.is_dir(), reason="needs Node, and `npm ci` in tests/report/consumers"
)


def node(script: str, *arguments: str, text: str = "") -> str:
    """What a script of JavaScript prints; it finds the packages."""
    command = [NODE or "node", "--input-type=module", "--eval", script, *arguments]
    done = subprocess.run(command, cwd=FOLDER, input=text, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
