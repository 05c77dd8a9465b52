"""What is Python in a cell, held against what IPython makes of it."""

from __future__ import annotations

import ast

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from IPython.core.interactiveshell import InteractiveShell

from tests.notebooks.ipython import parsed, shape
from torchmemlint.source.cells import program_of

CELLS = [
    "%matplotlib inline\nimport os",
    "!pip install torch",
    "x \\\n",
    "x \\\n\n",
    "!pip install \\\n    torch \\\n    numpy\nx = 1",
    "try:\n  with f() as g:\n    %shell wget -P /tmp \\\n      https://x.y/7102c/p\n    a = 1\nexcept E:\n  pass",
    "try:\n  !wget \\\n    7102c\nfinally:\n  pass",
    "%config A.b = \\\n  'c'\ny",
    "files = !ls -l\nprint(files)",
    "a, b = %sql select 1, \\\n  2",
    "rows[0] = %sql select a == b",
    "rows.of: list = !cat x",
    "if True:\n    !ls\n    %cd ..\nelse:\n    %time f()",
    "for x in y:\n    z = !echo {x}\n\n    print(z)",
    "def f():\n    '''%no magic\n!nor shell'''\n    !ls\n",
    "x = (a\n% b)\ny = a \\\n% b\n",
    "x = [\n    1\n    % 2,\n]\n",
    "?print\nprint?\nprint??\n??print\n  \n",
    "torch.nn.*?",
    "x[0].y?",
    "%time?",
    "%%time?",
    "?",
    "!!ls",
    "%%time\nx = 1\n!ls",
    "%%time f()\nx = 1",
    "\n\n%%time\n\nx = 1",
    "%%capture out --no-stderr\nx = f()",
    "# a comment first\n%%time\nx = 1",
    "%%bash\nfor f in *; do\n  echo 'it\n",
    "%%writefile model.py\nimport torch\nx = (",
    "%%javascript\nlet x = 1;",
    "%%html",
    "    x = 1\n    if x:\n        y = 2\n",
    "  !ls\n  x = 2",
    "   # only a comment\nx = 1",
    " x = 1\ny = 2",
    ">>> x = 1\n>>> if x:\n...     y = 2\n",
    "In [1]: x = 1\n   ...: y = 2",
    "await f()\nasync with a as b:\n    pass\nasync for x in y:\n    pass\n",
    "return 1",
    "x = 1;",
    "plt.show();\n%matplotlib inline",
    "x = 1; !ls",
    "def half(",
    "print 'two'",
    "x = '\n!ls",
    "!echo it's\nx = 1",
    "!echo '''\nx = '''a'''\n",
    "!echo (\nx = [1]\n!echo )",
    "!echo {x\ny = 1",
    "x = !ls\n!ls \\\n)",
    "x = %time f\n!ls \\\n)",
    "s = (\nx = !ls\n)",
    "%time x = f(1)\n%time  f(2)\n%time\n%timeit f(3)\n%time !ls",
    "class A:\n    %time x = 1\n    !ls\n",
    "try:\n    !ls\nexcept Exception:\n    pass",
    "x = 1\r\n!ls\r\ny = 2\r\n",
    "x = 1\n\x0c\ny = 2",
    "with f() as g:\n\t%time h()\n",
    "lambda: !ls",
    "x = y = !ls",
    "f(x = !ls)",
    "x == !ls",
    "x += !ls",
    "\\",
    "x = 1 \\",
    "",
    "   ",
    "#!/bin/bash\nx = 1",
    "ls -l",
    "???",
    "if x:\n    ???",
    "\ud800 = 1",
    "x = '\0'",
]


def agree(cell: str) -> None:
    theirs = parsed(cell)
    ours = program_of([cell])
    assert (theirs is None) == bool(ours.problems), ours.problems
    if theirs is not None:
        assert shape(ast.parse(ours.text)) == shape(theirs)


@pytest.mark.parametrize("cell", CELLS)
def test_ipython_reads_the_same(cell: str) -> None:
    agree(cell)


@pytest.mark.parametrize("cell", ["pip install torch", "\n  cd ..\n", "ls -l *.py", "conda install pytorch -c pytorch"])
def test_a_command_without_a_sign(cell: str) -> None:
    """IPython decides that of a cell of one row, when it runs it."""
    shell = InteractiveShell.instance()
    assert "run_line_magic" in shell.prefilter_manager.prefilter_lines(shell.transform_cell(cell))
    (row,) = (row for row in program_of([cell]).text.split("\n") if row)
    assert row.startswith("pass  #")


@pytest.mark.parametrize("cell", ["pip install torch\nimport torch", "import torch\npip install x", "ls -l", "pip"])
def test_no_command_without_a_sign(cell: str) -> None:
    """There are more rows, or it is Python."""
    program = program_of([cell])
    assert program.problems if "install" in cell else program.text == f"{cell}\n"


OPEN = ("(1,", "[", "'''", "\\", ")", "]")
ROWS = st.sampled_from(
    [
        *(
            "x = 1",
            "if x:",
            "else:",
            "for y in x:",
            "    pass",
            "    x = 2",
            "def f(a):",
            "    return a",
            "x = (1,",
            ")",
            "]",
        ),
        *(
            "!ls",
            "    !ls",
            "%time f(x)",
            "    %time f(x)",
            "%cd x",
            "x = !ls",
            "    x = %sql a b",
            "x?",
            "    x??",
            "?x",
            "%%time",
        ),
        *(
            "!ls \\",
            "  b",
            "'''",
            "s = '''",
            "% x",
            "%x",
            "!echo '",
            '!echo "',
            "!echo (",
            "# %x",
            "",
            "  ",
            "x \\",
            "%%bash",
        ),
        *(
            "!!ls",
            "f(x)?",
            "x = %time f",
            "    ",
            "\t!ls",
            "await x",
            "x = [",
            "x]",
            "!echo )",
            "print(x);",
            "%%capture out",
        ),
    ]
)


@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(ROWS, max_size=8))
def test_ipython_reads_the_same_of_any_rows(rows: list[str]) -> None:
    # What is left open makes one row of itself and a question further down, of which IPython does the question alone.
    questions = any(row.endswith("?") for row in rows)
    assume(not questions or not any(row.startswith("!echo") or row.endswith(OPEN) for row in rows))
    # Below a comment, the magic of another language is one for Google's Colab only: tests/source/test_cells.py.
    told = [row for row in rows if row.strip()]
    below = next((row for row in told if not row.lstrip().startswith("#")), "")
    assume(not below.lstrip().startswith("%%") or told[0] is below)
    agree("\n".join(rows))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.lists(ROWS, max_size=6).map("\n".join), max_size=4))
def test_each_row_of_a_program_is_a_row_of_a_cell(cells: list[str]) -> None:
    program = program_of(cells)
    assume(program.text)
    shown = program.shown.split("\n")
    for number, row in enumerate(program.text.split("\n")):
        cell, within = program.place(number + 1)
        found = program.cells[cell]
        if row in found.stand_ins:
            assert found.stand_ins[row] == shown[number] == found.own[within - 1]
        elif row and row != program.marker:
            assert shown[number].endswith(row)
            assert shown[number][found.offsets.get(within - 1, 0) :] == row


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(st.lists(st.lists(ROWS, max_size=6).map("\n".join), max_size=4), st.data())
def test_a_changed_row_comes_back_to_its_cell_and_no_other_row_changes(cells: list[str], data: st.DataObject) -> None:
    program = program_of(cells)
    rows = program.text.split("\n")[:-1]
    plain = [
        number
        for number, row in enumerate(rows)
        if row in ("x = 1", "f(x)", "pass") or (row.startswith("    ") and row.strip())
    ]
    assume(plain)
    number = data.draw(st.sampled_from(plain))
    cell, within = program.place(number + 1)
    rows[number] += "  # changed"
    changed = program.changed("\n".join([*rows, ""]))
    if program.cells[cell].rigid or program.text.split("\n")[number] in program.cells[cell].stand_ins:
        assert changed is None
        return
    assert changed is not None
    assert [old for old, new in zip(cells, changed, strict=True) if old != new] == [cells[cell]]
    expected = cells[cell].split("\n")
    expected[within - 1] += "  # changed"
    assert changed[cell] == "\n".join(expected)
