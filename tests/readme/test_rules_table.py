"""The README's table of rules is that of the registry."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import rules_table  # noqa: E402


def test_the_readme_has_the_table_of_the_registry() -> None:
    text = rules_table.README.read_text(encoding="utf-8")
    assert rules_table.with_table(text) == text


def test_a_stale_table_is_noticed() -> None:
    text = rules_table.README.read_text(encoding="utf-8")
    stale = text.replace("| TML101 |", "| TML999 |")
    assert stale != text
    assert rules_table.with_table(stale) == text


def test_a_document_without_a_place_for_it_is_refused() -> None:
    with pytest.raises(ValueError, match="no place"):
        rules_table.with_table("# nothing here\n")


def test_the_command_compares() -> None:
    done = subprocess.run([sys.executable, str(ROOT / "tools/rules_table.py"), "--check"], check=False)
    assert done.returncode == 0
