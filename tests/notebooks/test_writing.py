"""Changed cells are written so that nothing else in the file changes."""

from __future__ import annotations

import json
from typing import Any

import nbformat
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from torchmemlint.findings import Position
from torchmemlint.source.decoding import UnreadableFile
from torchmemlint.source.notebook import read_notebook

BEFORE, AFTER = "total += loss", "total += loss.detach()"


def notebook(source: Any, **more: Any) -> dict[str, Any]:
    cell = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": source}
    return {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5, **more}


def changed(data: str, before: str = BEFORE, after: str = AFTER) -> str:
    found = read_notebook(data.encode())
    assert before in found.text
    return found.encode(found.text.replace(before, after)).decode()


@pytest.mark.parametrize(
    "source", ["x = 1\ntotal += loss\ny", ["x = 1\n", "total += loss\n", "y"], ["x = 1\ntotal ", "+= loss"]]
)
@pytest.mark.parametrize("indent", [None, 0, 1, 4, "\t"])
@pytest.mark.parametrize("end", ["", "\n", "\r\n", "  \n\n"])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_only_the_changed_characters_change(source: Any, indent: Any, end: str, ascii_only: bool) -> None:
    text = json.dumps(notebook(source, metadata={"é": "☃ \x7f"}), indent=indent, ensure_ascii=ascii_only) + end
    if isinstance(source, list) and "total" in source[0]:  # one row of code in two strings
        assert json.loads(changed(text))["cells"][0]["source"] == ["x = 1\ntotal ", "+= loss.detach()"]
        assert changed(text) == text.replace("+= loss", "+= loss.detach()")
    else:
        assert changed(text) == text.replace(BEFORE, AFTER)


def test_escapes_stay_as_they_are_written() -> None:
    text = (
        r'{"cells": [{"cell_type": "code", "source": ["s = \"\u00e9\t\/\ud83d\ude00é\"; total += loss # \u00E9\n"]}]}'
    )
    assert changed(text) == text.replace(BEFORE, AFTER)


def test_new_letters_are_written_as_the_others_are() -> None:
    raw = r'{"cells": [{"cell_type": "code", "source": "# é\nx"}]}'
    escaped = raw.replace("é", r"\u00e9")
    assert "ü" in changed(raw, "\nx", "\nü")
    assert r"\u00fc" in changed(escaped, "\nx", "\nü")


def test_rows_come_and_go_as_items_of_the_list() -> None:
    text = json.dumps(notebook(["import torch\n", "a\n", "b"]), indent=1)
    assert changed(text, "a\n", "a\na2\n") == text.replace(r'"a\n",', '"a\\n",\n    "a2\\n",')
    assert changed(text, "b\n", "b\nc\n") == text.replace('"b"', '"b\\n",\n    "c"')
    assert changed(text, "a\n", "") == text.replace('    "a\\n",\n', "")
    assert changed(text, "a\nb\n", "a\n") == text.replace('"a\\n",\n    "b"', '"a"')
    alone = json.dumps(notebook(["x"]), indent=1)
    assert changed(alone, "x\n", "x\ny\n") == alone.replace('"x"', '"x\\n",\n    "y"')
    compact = json.dumps(notebook(["x"]))
    assert changed(compact, "x\n", "x\ny\n") == compact.replace('"x"', '"x\\n", "y"')


def test_newlines_within_a_cell_stay() -> None:
    text = json.dumps(notebook("a\r\nb\rc\n!ls\r\nd"))
    assert changed(text, "b\n", "b2\n") == text.replace(r"b\r", r"b2\r")
    assert changed(text, "b\n", "b\nb2\n") == text.replace(r"b\r", r"b\rb2\r\n")


def test_a_byte_order_mark_stays() -> None:
    text = "\ufeff" + json.dumps(notebook(BEFORE))
    assert changed(text) == text.replace(BEFORE, AFTER)


def test_of_equal_keys_the_last_counts_as_for_jupyter() -> None:
    text = '{"cells": [1], "cells": [{"cell_type": "code", "source": "total += loss", "source": ["total += loss"]}]}'
    assert changed(text) == text.replace('["total += loss"]', '["total += loss.detach()"]')


def test_the_right_one_of_equal_rows_changes() -> None:
    cells = ["x = 1\ntotal += loss", "total += loss\nx = 1"]
    text = nbformat.writes(new_notebook(cells=[new_markdown_cell("total += loss"), *map(new_code_cell, cells)]))
    found = read_notebook(text.encode())
    rows = found.text.split("\n")
    assert rows[1] == rows[3] == BEFORE
    del rows[3]
    after = nbformat.reads(found.encode("\n".join(rows)).decode(), as_version=4)
    assert [cell.source for cell in after.cells] == ["total += loss", cells[0], "x = 1"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = 1\n# %%\n", ""),  # the border of two cells
        ("x = 1\n# %%\ny", "y\n# %%\n# %%\nx"),
        ("pass  #", "pass #"),  # what stands for a command
        ("# %%\n\n\n", "# %%\n\nx\n"),  # a cell of the shell
    ],
)
def test_what_cannot_be_told_apart_is_refused(before: str, after: str) -> None:
    text = json.dumps(
        notebook(
            "!ls\nx = 1",
            cells=[{"cell_type": "code", "source": source} for source in ("!ls\nx = 1", "y = 2", "%%bash\nls")],
        )
    )
    with pytest.raises(UnreadableFile, match="the change goes over the border"):
        changed(text, before, after)


SOURCES = st.text(
    st.sampled_from('ab=1 \n\r\t"\\é\u2028\x0c\x85😀!%#') | st.characters(exclude_categories=["Cs"]), max_size=25
)


@st.composite
def notebooks(draw: st.DrawFn) -> str:
    cells = []
    for source in draw(st.lists(SOURCES, min_size=1, max_size=4)):
        kept: Any = source
        if draw(st.booleans()):
            kept = source.splitlines(keepends=True)
        elif draw(st.booleans()):
            cut = draw(st.integers(0, len(source)))
            kept = [source[:cut], source[cut:]]
        kind = draw(st.sampled_from(["code", "code", "markdown"]))
        cells.append({"source": kept, "cell_type": kind, "outputs": draw(st.sampled_from([[], [{"text": '}]\\"'}]]))})
    indent = draw(st.sampled_from([None, 1, "\t"]))
    return json.dumps(notebook("", cells=cells), indent=indent, ensure_ascii=draw(st.booleans()))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(notebooks(), st.data())
def test_any_change_is_written_and_read_again(text: str, data: st.DataObject) -> None:
    found = read_notebook(text.encode())
    assert found.encode() == text.encode()
    editable = [number for number, cell in enumerate(found.program.cells) if not cell.rigid]
    if not editable:
        return
    chosen = data.draw(st.sampled_from(editable))
    row = found.program.first_rows[chosen] - 1
    rows = found.text.split("\n")
    rows.insert(row, data.draw(st.sampled_from(["new = 'é'", "new", "", "new = 1  # \u2028"])))
    wanted = "\n".join(rows)
    try:
        after = found.encode(wanted).decode()
    except UnreadableFile:
        return  # what was inserted makes something else of the rows below
    assert read_notebook(after.encode()).text == wanted
    old, new = json.loads(text), json.loads(after)
    number = found.numbers[chosen] - 1
    assert type(old["cells"][number]["source"]) is type(new["cells"][number]["source"])
    for both in (old, new):
        both["cells"][number]["source"] = None
    assert old == new


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(notebooks())
def test_places_in_the_file_are_where_the_rows_stand(text: str) -> None:
    found = read_notebook(text.encode())
    cells = found.cells()
    starts = [0, *(index + 1 for index, character in enumerate(text) if character == "\n")]
    sources = {number: cell["source"] for number, cell in enumerate(json.loads(text)["cells"], 1)}
    for row, shown in enumerate(found.shown.split("\n")[:-1], 1):
        within = cells.within(Position(row, 1)).row
        if not isinstance(sources[cells.cell(row)], str) or within > len(sources[cells.cell(row)].split("\n")):
            continue  # a row of a list may be divided; there is a row between two cells
        start, end = (cells.in_file(Position(row, column)) for column in (1, len(shown) + 1))
        written = text[starts[start.row - 1] + start.column - 1 : starts[end.row - 1] + end.column - 1]
        assert json.loads(f'"{written}"') == shown
