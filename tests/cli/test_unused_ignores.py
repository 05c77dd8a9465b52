"""Suppressions that silence nothing are found, and `--fix` takes away them alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Run

HEAD = "import torch\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # several codes
        ("x = LEAK101  # torchmemlint: ignore[TML101, TML102]\n", "x = LEAK101  # torchmemlint: ignore[TML101]\n"),
        ("x = LEAK101  # torchmemlint: ignore[TML102,TML101]\n", "x = LEAK101  # torchmemlint: ignore[TML101]\n"),
        (
            "x = LEAK101, LEAK201  # torchmemlint: ignore[TML102, TML101, TML301, TML201]\n",
            "x = LEAK101, LEAK201  # torchmemlint: ignore[TML101, TML201]\n",
        ),
        (
            "x = LEAK101  # torchmemlint: ignore[TML101, graph-collection]\n",
            "x = LEAK101  # torchmemlint: ignore[TML101]\n",
        ),
        ("x = LEAK101  # torchmemlint: ignore[TML1, TML2]\n", "x = LEAK101  # torchmemlint: ignore[TML1]\n"),
        # other tools' codes
        ("x = 1  # noqa: TML101, E501\n", "x = 1  # noqa: E501\n"),
        ("x = 1  # noqa: E501 TML101 F401\n", "x = 1  # noqa: E501, F401\n"),
        ("x = LEAK101  # noqa: E501, TML101, TML102\n", "x = LEAK101  # noqa: E501, TML101\n"),
        ("x = 1  # NOQA:TML101,E501\n", "x = 1  # NOQA:E501\n"),
        ("x = 1  # type: ignore[attr]  # noqa: TML101\n", "x = 1  # type: ignore[attr]\n"),
        ("x = 1  # noqa: TML101  # type: ignore[attr]\n", "x = 1  # type: ignore[attr]\n"),
        (
            "x = 1  # pylint: disable=a  # torchmemlint: ignore[TML101]  # noqa: E501\n",
            "x = 1  # pylint: disable=a  # noqa: E501\n",
        ),
        # the whole file
        (
            "# torchmemlint: ignore-file[TML101, TML102]\nx = LEAK101\n",
            "# torchmemlint: ignore-file[TML101]\nx = LEAK101\n",
        ),
        ("# torchmemlint: ignore-file[TML101]\nx = 1\n", "x = 1\n"),
        ("# torchmemlint: ignore-file\nx = 1\n", "x = 1\n"),
        ("x = 1  # torchmemlint: ignore-file[TML101]\n", "x = 1\n"),
        (
            "# torchmemlint: ignore-file[TML101]\nx = LEAK101  # torchmemlint: ignore[TML102]\n",
            "# torchmemlint: ignore-file[TML101]\nx = LEAK101\n",
        ),
        # rules that are off
        ("x = 1  # torchmemlint: ignore[TML101, TML204]\n", "x = 1  # torchmemlint: ignore[TML204]\n"),
        # reasons
        (
            "x = LEAK101  # torchmemlint: ignore[TML101, TML102]: as asked\n",
            "x = LEAK101  # torchmemlint: ignore[TML101]: as asked\n",
        ),
        ("x = 1  # torchmemlint: ignore[TML101] as asked\n", "x = 1\n"),
        ("x = 1  # why  # torchmemlint: ignore[TML101] as asked\n", "x = 1  # why\n"),
        ("x = 1  # noqa: TML101, E501 as asked\n", "x = 1  # noqa: E501 as asked\n"),
        # two comments, of which one does it
        (
            "f(  # torchmemlint: ignore[TML102]\n    LEAK101,\n)  # torchmemlint: ignore[TML101]\n",
            "f(\n    LEAK101,\n)  # torchmemlint: ignore[TML101]\n",
        ),
        ("if x:\n    # torchmemlint: ignore[TML101]\n    y = 1\n", "if x:\n    y = 1\n"),
        ("x = 1  # torchmemlint: ignore[TML101]\r\n", "x = 1\r\n"),
    ],
)
def test_what_is_unused_goes_and_the_rest_stays(project: Path, run: Run, before: str, after: str) -> None:
    source = project / "a.py"
    head = HEAD.replace("\n", "\r\n") if "\r" in before else HEAD
    source.write_bytes((head + before).encode())
    assert "TML001" in run("--output-format=concise").out
    fixed = run("--fix", "--output-format=concise")
    assert source.read_bytes().decode() == head + after
    assert (fixed.code, "TML001" in fixed.out) == (0, False)
    assert run("--fix").code == 0
    assert source.read_bytes().decode() == head + after


@pytest.mark.parametrize(
    "text",
    [
        "x = 1  # torchmemlint: ignore[TML204]\n",  # off by default
        "# torchmemlint: ignore-file[TML204]\nx = 1\n",
        "x = 1  # noqa: E501, F401\n",
        "x = 1  # noqa\n",
        "x = LEAK101  # torchmemlint: ignore[TML101]\n",
        "x = LEAK101  # torchmemlint: ignore\n",
        "x = '''\n# torchmemlint: ignore[TML101]\n'''\n",
        "x = 1  # see torchmemlint: ignore[TML101]\n",
    ],
)
def test_what_is_not_unused(project: Path, run: Run, text: str) -> None:
    source = project / "a.py"
    source.write_text(HEAD + text)
    assert run("--fix").code == 0
    assert source.read_text() == HEAD + text


def test_codes_of_rules_that_this_run_leaves_out_stay(project: Path, run: Run) -> None:
    source = project / "a.py"
    text = f"{HEAD}x = 1  # torchmemlint: ignore[TML101, TML102]\n"
    for arguments in (("--ignore=TML101,TML102",), ("--select=TML001,TML2",), ("--per-file-ignores=a.py:TML1",)):
        source.write_text(text)
        assert run("--fix", *arguments).code == 0
        assert source.read_text() == text
    run("--fix", "--ignore=TML102")
    assert source.read_text() == f"{HEAD}x = 1  # torchmemlint: ignore[TML102]\n"


def test_a_fix_that_mends_a_finding_takes_its_comment_along(project: Path, run: Run) -> None:
    source = project / "a.py"
    source.write_text(f"{HEAD}x = LEAK101, LEAK201\ny = LEAK201  # torchmemlint: ignore[TML201, TML101]\n")
    run("--fix", "--unsafe-fixes")
    assert source.read_text() == f"{HEAD}x = mended, mended\ny = LEAK201  # torchmemlint: ignore[TML201]\n"


def test_what_a_baseline_knows_does_not_make_a_comment_unused(project: Path, run: Run) -> None:
    source = project / "a.py"
    source.write_text(f"{HEAD}x = LEAK101  # torchmemlint: ignore[TML101]\ny = LEAK101\n")
    run("baseline", "create")
    assert run().code == 0
    source.write_text(f"{HEAD}y = LEAK101\nx = 1  # torchmemlint: ignore[TML101]\n")
    assert "TML001" in run().out
    run("--fix")
    assert source.read_text() == f"{HEAD}y = LEAK101\nx = 1\n"
