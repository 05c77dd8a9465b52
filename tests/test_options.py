"""docs/options.md compares with what ruff and we have, as the two say it themselves."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools import tool

TABLE = tool("option_table")


def usage(*command: str | Path) -> str:
    return subprocess.run([*map(str, command)], capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def theirs() -> list[str]:
    ruff = shutil.which("ruff", path=str(Path(sys.executable).parent)) or shutil.which("ruff")
    if ruff is None:
        pytest.skip("ruff is not installed")
    found: list[str] = TABLE.named(usage(ruff, "check", "--help"))
    return found


@pytest.fixture(scope="module")
def ours() -> list[str]:
    text = usage(sys.executable, "-m", "torchmemlint", "check", "--help")
    found: list[str] = TABLE.named(text)
    return found


def test_every_option_of_ruff_is_there_or_has_a_reason(theirs: list[str]) -> None:
    assert len(theirs) > 35
    assert sorted(theirs) == sorted(TABLE.RUFF), "ruff has other options now: tools/option_table.py"
    for option, remark in TABLE.RUFF.items():
        assert TABLE.counterpart(option) or len(remark) > 20, f"--{option}: no reason"


def test_every_option_of_ours_is_in_the_table(ours: list[str]) -> None:
    told = {name for name in map(TABLE.counterpart, TABLE.RUFF) if name} | set(TABLE.OURS)
    assert told == set(ours)


def test_the_same_name_stands_for_itself(theirs: list[str], ours: list[str]) -> None:
    for option in set(theirs) & set(ours):
        assert TABLE.counterpart(option) == option


def test_long_options_are_read_from_a_usage() -> None:
    text = "Options:\n      --fix\n          Use `--no-fix`.\n  -w, --watch\n  -o, --output-file <FILE>\n"
    assert TABLE.named(text) == ["fix", "watch", "output-file"]
