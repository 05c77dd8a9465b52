"""The example of the documentation: its snapshot, and what the page shows of the report."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from torchmemlint.cli.main import main

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "oom.md").read_text(encoding="utf-8")


def test_the_page_shows_what_is_printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT / "examples")
    assert main(["oom", "out_of_memory.pickle", "out_of_memory.py", "--isolated"]) == 1
    printed = capsys.readouterr().out.splitlines()
    (shown,) = re.findall(r"^```text\n(out of memory .*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    missing = [line for line in shown.splitlines() if line not in printed and line != "…"]
    assert not missing


def test_the_page_shows_the_refusal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (command,) = re.findall(r'^\$ python -c "(import pickle.*)"$', PAGE, re.MULTILINE)
    exec(command)
    assert main(["oom", "bad.pickle"]) == 2
    assert capsys.readouterr().err.strip() in PAGE


def test_no_path_of_ours_is_in_the_snapshot() -> None:
    data = (ROOT / "examples" / "out_of_memory.pickle").read_bytes()
    paths = set(re.findall(rb"/[\w./-]+\.py", data))
    assert b"/home/me/project/out_of_memory.py" in paths
    assert all(path.startswith((b"/home/me/project/", b"/usr/lib/python3.12/")) for path in paths)
