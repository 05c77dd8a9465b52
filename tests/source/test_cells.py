"""Notebook cells as one program."""

from __future__ import annotations

import ast

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from torchmemlint.findings import Position, Span
from torchmemlint.source.cells import program_of


def test_rows_are_followed_into_their_cells() -> None:
    program = program_of(["import torch\nx = 1", "", "y = 2\n"])
    assert program.text == "import torch\nx = 1\n# %%\n\n# %%\ny = 2\n\n"
    assert program.shown == "import torch\nx = 1\n\n\n\ny = 2\n\n"
    assert program.first_rows == (1, 4, 6)
    assert program.place(2) == (0, 2)
    assert program.place(6) == (2, 1)
    assert program.place_of(Span(Position(6, 1), Position(6, 6))) == (2, Span(Position(1, 1), Position(1, 6)))


def test_what_is_not_python_is_passed_over() -> None:
    cells = [
        "%matplotlib inline\nimport torch\n!pip install x\n  ",
        "files = !ls\nt = %timeit -o f()\nif True:\n    %time f()\n",
        "torch.Tensor?\nx = (10\n% 3)\n",
        "%%bash\nfor x in *; do echo $x; done\n",
        "# Colab\n%%shell\nfor x in *; do echo $x; done\n",
        "%%time\nloss.backward()\n",
        "def half(\n",
        "%%html\n<b>bold</b>\n",
    ]
    program = program_of(cells)
    rows = [row.split("#")[0].rstrip() for row in program.text.split("\n")]
    ast.parse(program.text)
    assert rows[:3] == ["pass", "import torch", "pass"]
    assert rows[5:9] == ["files = get_ipython()", "t = get_ipython()", "if True:", "    f()"]
    assert "% 3)" in rows  # an operator, no magic
    assert "loss.backward()" in rows
    assert not any("echo" in row or "half" in row or "bold" in row for row in rows)
    (problem,) = program.problems
    assert program.place(problem.position.row) == (6, 1)


def test_a_string_that_looks_like_a_magic_is_left_alone() -> None:
    text = 'message = """\n%d items\n!important\n"""'
    assert program_of([text]).text == text + "\n"


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.text(st.sampled_from("ab=(\n %!?:\r'\"") | st.characters(exclude_categories=["Cs"]), max_size=30)))
def test_any_cells_make_a_program_that_parses(cells: list[str]) -> None:
    program = program_of(cells)
    ast.parse(program.text)
    for number, row in enumerate(program.first_rows[: len(cells)]):
        assert program.place(row) == (number, 1)
