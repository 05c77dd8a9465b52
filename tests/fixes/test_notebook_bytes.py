"""Fixes of notebooks: the strings of changed lines change, and every other byte stays."""

from __future__ import annotations

import difflib
import json
from pathlib import Path
from typing import Any

import pytest

from torchmemlint.engine.one_file import Fixing, Profile, check_file
from torchmemlint.rules.registry import all_rules

CODES = frozenset(rule.code for rule in all_rules() if rule.on)
CELLS = (
    ["# Übung \x7f\n", "import torch\n", "from torch import nn\n", "net, target = nn.Linear(3, 3), nn.Linear(3, 3)"],
    [
        "opt = torch.optim.SGD(net.parameters(), 0.1)\n",
        "for x in [torch.ones(3)]:\n",
        "  y = target(x).detach(); z = net(x)  # ☃ both\n",
        "  %timeit net\n",
        "  loss = (z - y).square().mean()\n",
        "  loss.backward(); opt.step()\n",
    ],
)


def notebook(cells: Any, indent: int | str | None, end: str) -> str:
    whole = [
        {"cell_type": "code", "execution_count": None, "metadata": {"é": 1.50}, "outputs": [], "source": source}
        for source in cells
    ]
    document = {"cells": whole, "metadata": {"x": "\ud83d\ude00"}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(document, indent=indent, ensure_ascii=True) + end


def fixed(path: Path, text: str) -> str:
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    check_file(path, Profile(CODES, fixing=Fixing.WRITE, unsafe=True))
    return path.read_bytes().decode("utf-8", "surrogatepass")


@pytest.mark.parametrize(
    ("indent", "ascii_only", "end"), [(1, False, "\n"), (3, True, ""), ("\t", True, "\r\n"), (0, False, "  \n\n")]
)
def test_only_the_strings_of_changed_lines_change(
    tmp_path: Path, indent: int | str, ascii_only: bool, end: str
) -> None:
    before = notebook(CELLS, indent, end) if ascii_only else notebook(CELLS, indent, end).replace("\\u2603", "☃")
    after = fixed(tmp_path / "program.ipynb", before)
    rows, others = before.split("\n"), after.split("\n")
    taken, put = [], []
    for kind, a, b, c, d in difflib.SequenceMatcher(None, rows, others, autojunk=False).get_opcodes():
        if kind != "equal":
            taken += rows[a:b]
            put += others[c:d]
    assert [json.loads(row.strip().rstrip(",")) for row in taken] == [CELLS[1][2]]
    assert [json.loads(row.strip().rstrip(",")) for row in put] == [
        "  with torch.no_grad():\n",
        "    y = target(x)\n",
        "  z = net(x)  # ☃ both\n",
    ]
    assert ("\\u2603" in after) is ascii_only


@pytest.mark.parametrize("source", ["".join(CELLS[1]), "".join(CELLS[1]).replace("\n", "\r\n")])
def test_a_source_of_one_string_changes_within(tmp_path: Path, source: str) -> None:
    before = notebook((CELLS[0], source), None, "")
    after = fixed(tmp_path / "program.ipynb", before)
    line = json.dumps(CELLS[1][2])[1:-1].removesuffix("\\n")
    newline = "\\r\\n" if "\r" in source else "\\n"
    wanted = newline.join(("  with torch.no_grad():", "    y = target(x)", "  z = net(x)  # \\u2603 both"))
    assert after == before.replace(line, wanted)
