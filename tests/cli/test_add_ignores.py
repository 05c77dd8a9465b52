"""`--add-ignores`: comments that silence what is found, and change nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Run


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = LEAK101\n", "x = LEAK101  # torchmemlint: ignore[TML101]\n"),
        ("x = LEAK101", "x = LEAK101  # torchmemlint: ignore[TML101]"),
        ("x = LEAK101   \n", "x = LEAK101  # torchmemlint: ignore[TML101]\n"),
        ("x = LEAK102, LEAK101, LEAK101\n", "x = LEAK102, LEAK101, LEAK101  # torchmemlint: ignore[TML101, TML102]\n"),
        ("x = LEAK101; y = LEAK102\n", "x = LEAK101; y = LEAK102  # torchmemlint: ignore[TML101, TML102]\n"),
        ("x = LEAK101  # keep\n", "x = LEAK101  # keep  # torchmemlint: ignore[TML101]\n"),
        ("x = LEAK101  # noqa: E501\n", "x = LEAK101  # noqa: E501  # torchmemlint: ignore[TML101]\n"),
        ("x = LEAK101  # type: ignore\n", "x = LEAK101  # type: ignore  # torchmemlint: ignore[TML101]\n"),
        (
            "x = LEAK101, LEAK102  # torchmemlint: ignore[TML102] why\n",
            "x = LEAK101, LEAK102  # torchmemlint: ignore[TML102, TML101] why\n",
        ),
        (
            "x = LEAK101, LEAK102  # noqa: TML102\n",
            "x = LEAK101, LEAK102  # noqa: TML102  # torchmemlint: ignore[TML101]\n",
        ),
        ("f(\n    LEAK101,\n    2,\n)\n", "f(\n    LEAK101,  # torchmemlint: ignore[TML101]\n    2,\n)\n"),
        (
            "f(\n    LEAK101,\n    LEAK102,  # torchmemlint: ignore[TML102]\n)  # torchmemlint: ignore[TML201]\n",
            "f(\n    LEAK101,\n    LEAK102,  # torchmemlint: ignore[TML102]\n)"
            "  # torchmemlint: ignore[TML201, TML001, TML101]\n",
        ),
        ("x = \\\n    LEAK101\n", "x = \\\n    LEAK101  # torchmemlint: ignore[TML101]\n"),
        ("x = LEAK101 + \\\n    1\n", "x = LEAK101 + \\\n    1  # torchmemlint: ignore[TML101]\n"),
        ("x = LEAK101, '''a\n# '''\n", "x = LEAK101, '''a\n# '''  # torchmemlint: ignore[TML101]\n"),
        (
            "x = '''a\n''', LEAK101, '''b\nc'''\n",
            "x = '''a\n''', LEAK101, '''b\nc'''  # torchmemlint: ignore[TML101]\n",
        ),
        ("x = f'''{LEAK101}\n# {y}'''\n", "x = f'''{LEAK101}\n# {y}'''  # torchmemlint: ignore[TML101]\n"),
        (
            "def f(\n    a=LEAK101,\n):\n    '''LEAK'''\n",
            "def f(\n    a=LEAK101,  # torchmemlint: ignore[TML101]\n):\n    '''LEAK'''\n",
        ),
        ("é = LEAK101\r\ny = 1\r\n", "é = LEAK101  # torchmemlint: ignore[TML101]\r\ny = 1\r\n"),
        ("x = LEAK101\ry = 1\r", "x = LEAK101  # torchmemlint: ignore[TML101]\ry = 1\r"),
        ("if x:\n\ty = LEAK101\n", "if x:\n\ty = LEAK101  # torchmemlint: ignore[TML101]\n"),
        ("x = 'a\\\nb', LEAK101\n", "x = 'a\\\nb', LEAK101  # torchmemlint: ignore[TML101]\n"),
        ("x = LEAK101  # a \\\ny = 1\n", "x = LEAK101  # a \\  # torchmemlint: ignore[TML101]\ny = 1\n"),
        (
            "# torchmemlint: ignore-file[TML102]\nx = LEAK101\n",
            "# torchmemlint: ignore-file[TML102]  # torchmemlint: ignore[TML001]\n"
            "x = LEAK101  # torchmemlint: ignore[TML101]\n",
        ),
        (
            "x = 1  # torchmemlint: ignore[TML101]\nx = LEAK101  # torchmemlint: ignore[TML999]\n",
            "x = 1  # torchmemlint: ignore[TML101, TML001]\n"
            "x = LEAK101  # torchmemlint: ignore[TML999, TML002, TML101]\n",
        ),
    ],
)
def test_where_the_comments_go(project: Path, run: Run, before: str, after: str) -> None:
    source = project / "a.py"
    head = "import torch\r\n" if "\r\n" in before else "import torch\r" if "\r" in before else "import torch\n"
    source.write_bytes((head + before).encode())
    done = run("--add-ignores")
    assert (done.code, done.out) == (0, "")
    assert source.read_bytes().decode() == head + after
    assert run().code == 0
    assert run("--add-ignores") == (0, "", "Ignored 0 problems.\n")
    assert source.read_bytes().decode() == head + after


@pytest.mark.parametrize(
    "text",
    [
        "import torch\nx = LEAK101; y = '''\n'''\n",  # no row of the statement ends outside of a string
        "import torch\nprint 'a'\n",  # cannot be read
    ],
)
def test_what_cannot_be_silenced_is_reported_and_left_alone(project: Path, run: Run, text: str) -> None:
    source = project / "a.py"
    source.write_text(text)
    done = run("--add-ignores", "--output-format=concise")
    assert done.code == 1
    assert done.out.startswith("a.py:2:")
    assert done.err == "Ignored 0 problems.\n"
    assert source.read_text() == text


def test_only_what_is_reported_is_silenced(project: Path, run: Run) -> None:
    source = project / "a.py"
    source.write_text("import torch\nx = LEAK101\ny = LEAK102\n")
    run("--add-ignores", "--select=TML102")
    assert source.read_text() == "import torch\nx = LEAK101\ny = LEAK102  # torchmemlint: ignore[TML102]\n"
    run("baseline", "create")
    source.write_text(source.read_text() + "z = LEAK101\n")
    assert run("--add-ignores").err == "Ignored 1 problem.\n"
    assert source.read_text() == (
        "import torch\nx = LEAK101\ny = LEAK102  # torchmemlint: ignore[TML102]\n"
        "z = LEAK101  # torchmemlint: ignore[TML101]\n"
    )


def test_the_reason_goes_into_new_comments(project: Path, run: Run) -> None:
    source = project / "a.py"
    source.write_text("import torch\nx = LEAK101\ny = LEAK101, LEAK102  # torchmemlint: ignore[TML101] old\n")
    assert run("--add-ignores", "--reason", "see #1").code == 2
    assert run("--add-ignores", "--reason", "two\nlines").code == 2
    assert run("--reason", "x").code == 2
    run("--add-ignores", "--reason", "  legacy code ")
    assert source.read_text() == (
        "import torch\nx = LEAK101  # torchmemlint: ignore[TML101] legacy code\n"
        "y = LEAK101, LEAK102  # torchmemlint: ignore[TML101, TML102] old\n"
    )
    assert run().code == 0


def test_the_encoding_is_kept_and_a_reason_it_lacks_is_an_error(project: Path, run: Run) -> None:
    source = project / "a.py"
    before = "# coding: latin-1\nimport torch\né = LEAK101\n".encode("latin-1")
    source.write_bytes(before)
    refused = run("--add-ignores", "--reason", "π")
    assert refused.code == 2
    assert "the comments cannot be written: the file's encoding iso-8859-1 has no character 'π'" in refused.err
    assert source.read_bytes() == before
    run("--add-ignores", "--reason", "ü")
    assert source.read_bytes() == before.rstrip() + "  # torchmemlint: ignore[TML101] ü\n".encode("latin-1")
    source.write_bytes(b"\xef\xbb\xbfimport torch\nLEAK101\n")
    run("--add-ignores")
    assert source.read_bytes() == b"\xef\xbb\xbfimport torch\nLEAK101  # torchmemlint: ignore[TML101]\n"


def test_the_diff_writes_nothing(project: Path, run: Run) -> None:
    source = project / "a.py"
    source.write_text("import torch\nx = LEAK101\n")
    shown = run("--add-ignores", "--diff")
    assert shown.code == 1
    assert "+x = LEAK101  # torchmemlint: ignore[TML101]" in shown.out
    assert shown.err == "Would ignore 1 problem.\n"
    assert source.read_text() == "import torch\nx = LEAK101\n"


def test_standard_input_goes_to_standard_output(run: Run) -> None:
    done = run("-", "--add-ignores", stdin=b"import torch\nx = LEAK101\n")
    assert done == (0, "import torch\nx = LEAK101  # torchmemlint: ignore[TML101]\n", "Ignored 1 problem.\n")


def test_it_does_not_go_with_fix(run: Run) -> None:
    done = run("--add-ignores", "--fix")
    assert (done.code, "give one of them" in done.err) == (2, True)


def test_other_linters_read_the_comments_that_were_there(project: Path, run: Run) -> None:
    source = project / "a.py"
    source.write_text("import torch\nimport os  # noqa: F401\nx = LEAK101, undefined  # noqa: F821\nl = LEAK101\n")
    run("--add-ignores", "--reason", "E741 is none of ours")
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--select=F,E7", "--output-format=json", source]
    found = json.loads(subprocess.run(ruff, capture_output=True, text=True).stdout)
    assert {(one["code"], one["location"]["row"]) for one in found} == {("F401", 1), ("F821", 4), ("E741", 4)}


def test_a_notebook_keeps_all_but_the_cell(project: Path, run: Run) -> None:
    cells = ["%matplotlib inline\nimport torch", "!ls\ntotal = LEAK101\n'''x\n'''", "# a note"]
    notebook = {
        "cells": [
            {"cell_type": "code", "execution_count": 1, "id": f"c{n}", "metadata": {}, "outputs": [], "source": cell}
            for n, cell in enumerate(cells)
        ],
        "metadata": {"language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    path = project / "a.ipynb"
    path.write_text(json.dumps(notebook))
    assert run("--add-ignores").err == "Ignored 1 problem.\n"
    notebook["cells"][1]["source"] = cells[1].replace("LEAK101", "LEAK101  # torchmemlint: ignore[TML101]")  # type: ignore[index]
    assert json.loads(path.read_text()) == notebook
    assert run().code == 0


def test_what_an_earlier_run_found_is_silenced_too(project: Path, run: Run) -> None:
    source = project / "a.py"
    source.write_text("import torch\nx = LEAK102\n")
    long_ago = 1_000_000_000
    os.utime(source, (long_ago, long_ago))
    cache = f"--cache-dir={project / 'kept'}"
    assert run(cache).code == 1
    assert run(cache).code == 1
    assert run("--add-ignores", cache).err == "Ignored 1 problem.\n"
    assert run(cache).code == 0
