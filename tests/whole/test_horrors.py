"""A directory with everything that can be wrong with files, checked by the real program in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

LEAK = """\
import torch


def train(model, criterion, loader):
    total = 0.0
    for x, y in loader:
        loss = criterion(model(x), y)
        loss.backward()
        total += loss{comment}
    return total
"""
ROW = 9  # of the leak
PADDING = 140_000


def leak(comment: str = "", above: str = "") -> str:
    return above + LEAK.format(comment=comment)


@pytest.fixture
def horrors(tmp_path: Path) -> Path:
    root = tmp_path / "horrors"
    root.mkdir()
    files = {
        "bom.py": b"\xef\xbb\xbf" + leak().encode(),
        "broken.py": b"import torch\n\n\ndef broken(:\n    pass\n",
        "crlf.py": leak().replace("\n", "\r\n").encode(),
        "deep.py": b"import torch\nx = " + b"-" * 2_000 + b"1\n",
        "brackets.py": b"import torch\nx = " + b"(" * 9_000 + b"\n",
        "empty.py": b"",
        "fine.py": leak().encode(),
        "latin1.py": leak("  # déjà vu", "# -*- coding: latin-1 -*-\n").encode("latin-1"),
        "null.py": b"import torch\n\0\n",
        "odd.py": leak().replace("model", "modèle").encode(),
        "python2.py": b"import torch\nprint 'loss', loss\n",
        "undeclared.py": "import torch\nname = 'é'\n".encode("latin-1"),
        "vast.py": b"import torch\n" + b"# one of very many lines that say little\n" * PADDING + leak().encode(),
        "sub/inner.py": leak().encode(),
        "folder.py/module.py": leak().encode(),
        "secret.py": leak().encode(),
    }
    for name, data in files.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_bytes(data)
    assert (root / "vast.py").stat().st_size > 5_000_000
    (root / "sub" / "loop").symlink_to(root, target_is_directory=True)
    (root / "self.py").symlink_to("self.py")
    (root / "dangling.py").symlink_to("nowhere.py")
    (root / "secret.py").chmod(0)
    return root


FOUND = {
    "bom.py": ROW,
    "crlf.py": ROW,
    "fine.py": ROW,
    "folder.py/module.py": ROW,
    "latin1.py": ROW + 1,
    "odd.py": ROW,
    "sub/inner.py": ROW,
    "vast.py": ROW + PADDING + 1,
}
UNREADABLE = {
    "brackets.py": "Syntax error: too many nested parentheses",
    "broken.py": "Syntax error: ",
    "dangling.py": "Cannot be read: No such file or directory",
    "deep.py": "Passed over: it is nested ",
    "null.py": "Contains a null byte: not Python source",
    "python2.py": "Python 2 file, passed over (Syntax error: ",
    "secret.py": "Cannot be read: Permission denied",
    "self.py": "Cannot be read: Too many levels of symbolic links",
    "undeclared.py": "Cannot be decoded: byte 0xe9 is not valid UTF-8",
}


def run(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "torchmemlint", "check", "--isolated", "--no-cache", *arguments, "."]
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", cwd=root, env=environment, check=False, timeout=120
    )


def expected_problems() -> dict[str, str]:
    if os.geteuid() == 0:  # nothing is closed to the superuser
        return {name: message for name, message in UNREADABLE.items() if name != "secret.py"}
    return UNREADABLE


@pytest.mark.parametrize("jobs", ["1", "4"])
def test_the_others_are_checked_and_each_problem_is_one_line(horrors: Path, jobs: str) -> None:
    done = run(horrors, "--output-format=json", "--jobs", jobs)
    assert (done.returncode, done.stderr) == (1, "")
    found = json.loads(done.stdout)
    leaks = {
        Path(one["filename"]).relative_to(horrors).as_posix(): one["location"]["row"]
        for one in found
        if one["code"] == "TML101"
    }
    leaks.pop("secret.py", None)
    assert leaks == FOUND
    problems = {Path(one["filename"]).name: one["message"] for one in found if one["code"] == "TML000"}
    assert problems.keys() == expected_problems().keys()
    for name, message in expected_problems().items():
        assert problems[name].startswith(message)
        assert "\n" not in problems[name]


def test_readable_output_has_a_line_for_each(horrors: Path) -> None:
    done = run(horrors, "--output-format=concise", "--select=TML000")
    assert (done.returncode, done.stderr) == (1, "")
    *lines, closing = done.stdout.splitlines()
    assert [line.partition(":")[0] for line in lines] == sorted(expected_problems())
    assert closing.startswith(f"Found {len(lines)} problems (")
    full = run(horrors)
    assert (full.returncode, full.stderr) == (1, "")
    assert full.stdout.count("TML000 unreadable-file") == len(lines)


def test_unreadable_files_fail_no_run_that_ignores_them(horrors: Path) -> None:
    assert run(horrors, "--select=TML202", "--ignore=TML000").returncode == 0
    assert run(horrors, "--exit-zero").returncode == 0


def test_fixing_changes_what_it_can_and_nothing_else(horrors: Path) -> None:
    readable = [name for name in FOUND if name != "secret.py"]
    before = {path: path.read_bytes() for path in sorted(horrors.rglob("*.py")) if path.is_file()}
    done = run(horrors, "--fix", "--select=TML101")
    assert done.stderr == ""
    for path, data in before.items():
        name = path.relative_to(horrors).as_posix()
        if name in readable or (name == "secret.py" and os.geteuid() == 0):
            assert path.read_bytes() == data.replace(b"+= loss", b"+= loss.detach()")
        else:
            assert path.read_bytes() == data
    assert (horrors / "self.py").is_symlink()
    assert run(horrors, "--fix", "--select=TML101", "--ignore=TML000").stdout.strip() == "All checks passed!"
