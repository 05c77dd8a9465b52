"""One cache for many runs, and one that cannot be written."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.robustness.conftest import LEAK, Launch, command, environment


def test_eight_runs_at_once_say_the_same(project: Path) -> None:
    for number in range(6):
        (project / f"f{number}.py").write_text(LEAK)
    arguments = command("--cache-dir", str(project.parent / "kept"))
    known = environment(TORCHMEMLINT_NO_CACHE="")
    runs = [
        subprocess.Popen(arguments, cwd=project, env=known, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(8)
    ]
    told = [(*one.communicate(), one.returncode) for one in runs]
    assert len(set(told)) == 1
    assert told[0][1:] == (b"", 1)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_said(project: Path, launch: Launch) -> None:
    folder = project.parent / "kept"
    folder.mkdir(mode=0o500)
    done = launch(f"--cache-dir={folder}", env=environment(TORCHMEMLINT_NO_CACHE=""))
    assert done.returncode == 1
    assert "results of earlier runs are not used" in done.stderr
