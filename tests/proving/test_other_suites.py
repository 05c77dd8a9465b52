"""Other people's tests before and after fixes: what passed and does not, and by which fix."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tests.tools import tool

ROOT = Path(__file__).resolve().parents[2]


TOOL = tool("other_suites")


def test_the_list_can_be_read() -> None:
    suites = TOOL.suites()
    assert len({suite.name for suite in suites}) == len(suites) >= 12
    assert all(suite.version and (suite.pytest or suite.examples) for suite in suites)
    assert any(suite.examples for suite in suites)


BEFORE = """\
def judge(net, loader):
    net.eval()
    for x in loader:
        print(
            net(x)
        )

    return net
"""


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ("def judge", "@torch.no_grad()\ndef judge", {2, 3, 4, 5, 6, 7, 8}),  # what the function does
        ("            net(x)\n", "            net(x).detach()\n", {4, 5, 6}),  # the statement
        ("    net.eval()\n", "", {2}),
        ("        )\n", "        )\n        del x\n", {4, 5, 6}),  # what it stands behind, at the end of a block
        ("    return net\n", "    net.train()\n    return net\n", {8}),
        ("def judge", "import torch\n\ndef judge", None),
    ],
)
def test_a_place_is_what_was_changed(old: str, new: str, lines: set[int] | None) -> None:
    found = [set(place.lines) for place in TOOL.suite_places.places("nets.py", BEFORE, BEFORE.replace(old, new))]
    assert found == ([lines] if lines else [])


@pytest.mark.slow
def test_what_breaks_is_bisected(tmp_path: Path) -> None:
    project = tmp_path / "sums-1.0"
    project.mkdir()
    (project / "sums.py").write_text(
        dedent("""
        import torch
        from torch import nn

        def scores(loader):
            net = nn.Linear(2, 2)
            net.eval()
            return [net(x) for x in loader]

        def scores_again(loader):
            net = nn.Linear(2, 2)
            net.eval()
            return [net(x) for x in loader]
        """),
        encoding="utf-8",
    )
    (project / "test_sums.py").write_text(
        dedent("""
        from pathlib import Path
        from sums import scores

        def test_apart():
            assert Path

        def test_unfixed():
            assert scores([]) == []
            text = Path(__file__).with_name("sums.py").read_text()
            assert "no_grad" not in text and "inference_mode" not in text

        def test_scores():
            assert scores([]) == []

        def test_failing():
            assert False
        """),
        encoding="utf-8",
    )
    (project / "example.py").write_text("import math\n", encoding="utf-8")
    suite = TOOL.Suite("sums", "1.0", pytest="test_sums.py", examples=("example.py",))
    result = TOOL.Runner(Path(sys.executable), tmp_path, 60).result(suite)
    assert (result.passed, result.failed, result.kind) == (4, ["test_sums.py::test_failing"], "tests and examples")
    fixed = result.unsafe
    assert fixed.fixes == fixed.places == 2
    assert (fixed.run, fixed.tests) == (1, 2)  # no test calls `scores_again`, and two call `scores`
    assert fixed.broken == ["test_sums.py::test_unfixed"]
    assert fixed.causes
    assert all(cause.startswith("sums.py:") for cause in fixed.causes)
