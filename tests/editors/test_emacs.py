"""Emacs, in batch mode, with Eglot and `editors/emacs/torchmemlint.el`."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from editors.setting import EDITORS, FIXED, FIXED_ALL, HERE, editor, environment, make_project, needs_server

DEBIANS = Path("/usr/share/emacs/site-lisp/elpa")  # where packages such as elpa-eglot put theirs


@needs_server
def test_it_shows_the_problems_and_fixes_them(tmp_path: Path) -> None:
    emacs = editor("emacs", "emacs-nox elpa-eglot")
    program, result = make_project(tmp_path / "project"), tmp_path / "result.json"
    env = environment(tmp_path, RESULT=str(result), PROGRAM=str(program))
    batch = [emacs, "-Q", "--batch"]
    packages = []
    if not has_eglot(batch, env):
        packages = [part for folder in DEBIANS.glob("*") if folder.is_dir() for part in ("-L", str(folder))]
        if not has_eglot([*batch, *packages], env):
            pytest.skip("this Emacs is older than 29 and has no eglot (apt-get install elpa-eglot)")
    done = subprocess.run(
        [*batch, *packages, "-l", str(EDITORS / "emacs" / "torchmemlint.el"), "-l", str(HERE / "drive.el")],
        env=env,
        cwd=program.parent,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert result.exists(), done.stdout + done.stderr
    seen = json.loads(result.read_text())
    assert "problem" not in seen, f"{seen['problem']}\n{done.stderr}"

    found = sorted((one["line"], one["type"], code_in(one["text"])) for one in seen["diagnostics"])
    assert found == [
        (16, "eglot-warning", "TML105"),
        (18, "eglot-error", "TML101"),
        (26, "eglot-warning", "TML201"),
        (34, "eglot-note", "TML301"),
    ]
    assert seen["titles"] == [
        "Fix TML101: Detach `loss` from its graph",
        "Ignore TML101 on this line",
        "Ignore TML101 in this file",
        "Explain TML101",
    ]
    assert FIXED in seen["fixed"]
    assert FIXED_ALL not in seen["fixed"]
    assert FIXED_ALL in seen["fixed_all"]
    assert sorted(code_in(one["text"]) for one in seen["left"]) == ["TML105", "TML301"]


def has_eglot(command: list[str], env: dict[str, str]) -> bool:
    """Whether this Emacs can load Eglot."""
    ask = [*command, "--eval", '(kill-emacs (if (locate-library "eglot") 0 1))']
    return subprocess.run(ask, env=env, capture_output=True, timeout=60).returncode == 0


def code_in(text: str) -> str:
    """The code in a text such as `torchmemlint [TML101]: ...`, as Eglot writes it."""
    return text.partition("[")[2].partition("]")[0]
