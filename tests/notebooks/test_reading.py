"""What a notebook may look like, and what is said of what is none."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import nbformat
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from torchmemlint.engine.one_file import Fixing, Profile, check_bytes
from torchmemlint.report.places import place
from torchmemlint.source.decoding import UnreadableFile
from torchmemlint.source.notebook import read_notebook

PATH = Path("/nowhere/n.ipynb")
TORCH = "import torch"


def code(source: Any = TORCH, **more: Any) -> dict[str, Any]:
    return {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": source, **more}


def notebook(*cells: Any, **more: Any) -> bytes:
    return json.dumps({"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 4, **more}).encode()


@pytest.mark.parametrize(
    ("data", "message", "row"),
    [
        (b"{}  torch", "invalid JSON (Extra data)", 1),
        (b"torch", "invalid JSON (Expecting value)", 1),
        (b'{"cells": [\n{"source": "torch"\n}', "invalid JSON (Expecting ',' delimiter)", 3),
        (b'{"cells": ["torch\n"]}', "invalid JSON (Invalid control character at)", 1),
        (b'["torch"]', "its JSON is no object", 1),
        (b'{"torch": 1}', "it has no list `cells`", 1),
        (b'{"cells": {"torch": 1}}', "it has no list `cells`", 1),
        (b'{"cells": ["torch"]}', "cell 1 is no object", 1),
        (notebook(code(), code(3)), "the source of cell 2 is no text", 1),
        (notebook(code(["a", None])), "the source of cell 1 is no text", 1),
        (notebook(code(), nbformat=5), "format 5", 1),
        (b'{"worksheets": [{"cells": []}], "nbformat": 3, "torch": 1}', "nbconvert --to notebook", 1),
        (b'{\n"torch": "\xe9"}', "byte 0xe9 is not valid UTF-8", 2),
        ('{"torch": 1}'.encode("utf-16"), "not valid UTF-8", 1),
        (b'{"torch":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply", 1),
        (b'{"torch": ' + b"9" * 10_000 + b"}", "Not a notebook", 1),
        (b"", "", 0),
    ],
)
def test_what_is_no_notebook(data: bytes, message: str, row: int) -> None:
    result = check_bytes(data, PATH, Profile(frozenset({"TML000"})))
    assert result.error is None, result.details
    if not message or b"torch" not in data:
        assert result.skipped
        with pytest.raises(UnreadableFile):
            read_notebook(data)
        return
    (finding,) = result.findings
    assert finding.code == "TML000"
    assert message in finding.message
    assert finding.span.start.row == row
    assert place(finding, finding.span.start).cell is None


@pytest.mark.parametrize(
    ("metadata", "cell", "python"),
    [
        ({}, {}, True),
        ({"language_info": {"name": "python"}}, {}, True),
        ({"language_info": {"name": "python"}, "kernelspec": {"language": "R"}}, {}, True),
        ({"kernelspec": {"name": "python3"}}, {}, True),
        ({"kernelspec": {"name": "conda-env-torch-py", "language": "python"}}, {}, True),
        ({"kernelspec": {"name": "my-env"}}, {}, True),
        ({"language_info": {"name": "R"}}, {}, False),
        ({"language_info": {"name": "julia"}, "kernelspec": {"name": "julia-1.9"}}, {}, False),
        ({"kernelspec": {"name": "ir"}}, {}, False),
        ({"kernelspec": {"language": "scala"}}, {}, False),
        ({"language_info": {"name": "python"}}, {"metadata": {"vscode": {"languageId": "sql"}}}, False),
        ({"language_info": {"name": "csharp"}}, {"metadata": {"vscode": {"languageId": "python"}}}, True),
        ({}, {"cell_type": "markdown"}, False),
        ({}, {"cell_type": "raw"}, False),
        ({"language_info": []}, {"metadata": []}, True),
    ],
)
def test_whose_cells_are_python(metadata: Any, cell: Any, python: bool) -> None:
    found = read_notebook(notebook(code(**cell), metadata=metadata))
    assert found.numbers == ((1,) if python else ())


def test_cells_count_as_they_stand_in_the_notebook() -> None:
    markdown = {"cell_type": "markdown", "metadata": {}, "source": "x"}
    found = read_notebook(notebook(markdown, code(), markdown, code("%%bash\nls"), code([]), code("")))
    assert found.numbers == (2, 4, 5, 6)


def test_outputs_are_not_kept() -> None:
    image = {"output_type": "display_data", "data": {"image/png": "A" * 1_000_000}, "metadata": {}}
    data = notebook(*(code(outputs=[image]) for _ in range(20)))
    tracemalloc.start()
    try:
        read_notebook(data)  # what is read once for all stays out of the count
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        found = read_notebook(data)
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.text.count(TORCH) == 20
    assert after - before < len(data) * 1.1  # the text itself, which a fix is written into
    assert peak - before < len(data) * 1.2  # no more than one cell's outputs beside it


def test_python_2_is_said_once() -> None:
    data = notebook(code(), code("print 'a'"), code("print 'b'"), code("x = 1"), code("y = ("))
    first, last = check_bytes(data, PATH, Profile(frozenset({"TML000"}))).findings
    assert "Python 2" in first.message
    assert first.severity.value == "warning"
    assert (place(first, first.span.start).cell, place(last, last.span.start).cell) == (2, 5)
    assert first.fingerprint != last.fingerprint


TRAINING = (
    "total = 0\nfor x in loader:\n    loss = model(x).sum()\n    loss.backward()\n    total += loss\nprint(total)"
)
ROWS = st.sampled_from(
    [*TRAINING.split("\n"), "import torch", "model = torch.nn.Linear(1, 1)", "!ls", "%time f()", "x = ("]
)
METADATA = st.dictionaries(
    st.text(max_size=3), st.recursive(st.none() | st.text(max_size=3), st.lists, max_leaves=3), max_size=2
)


@st.composite
def valid_notebooks(draw: st.DrawFn) -> bytes:
    """Whatever nbformat writes."""
    cells = [
        nbformat.v4.new_code_cell("import torch\nmodel = torch.nn.Linear(1, 1)"),
        nbformat.v4.new_code_cell(TRAINING),
    ]
    for _ in range(draw(st.integers(0, 3))):
        text = draw(st.lists(ROWS, max_size=5).map("\n".join) | st.text(max_size=20))
        make = draw(st.sampled_from(["code", "markdown", "raw"]))
        cell = getattr(nbformat.v4, f"new_{make}_cell")(text, metadata=draw(METADATA))
        if make == "code":
            cell.outputs = draw(st.sampled_from([[], [nbformat.v4.new_output("stream", text='}]"\\')]]))
        cells.insert(draw(st.integers(0, len(cells))), cell)
    written = nbformat.writes(nbformat.v4.new_notebook(cells=cells, metadata=draw(METADATA)))
    return written.encode("utf-8", "surrogatepass")


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(valid_notebooks())
def test_any_notebook_is_checked_and_fixed_once(data: bytes) -> None:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return  # half a character, which nbformat would not write to a file either
    profile = Profile(frozenset({"TML000", "TML001", "TML101", "TML102", "TML201"}), fixing=Fixing.PREVIEW)
    result = check_bytes(data, PATH, profile)
    assert result.error is None, result.details
    if result.fixed is None or not result.fixed.applied:
        return
    source = read_notebook(data)
    after = source.encode(result.fixed.after)
    nbformat.validate(nbformat.reads(after.decode(), as_version=4))
    old, new = json.loads(text), json.loads(after)
    for number, (one, other) in enumerate(zip(old["cells"], new["cells"], strict=True), 1):
        changed = one["source"] != other["source"]
        assert changed == any(cell.number == number for cell in result.fixed.cells or ())
        one["source"] = other["source"] = None
    assert old == new
    again = check_bytes(after, PATH, profile)
    assert again.error is None
    assert again.fixed is None or not again.fixed.applied
    assert [(f.code, f.span, f.message) for f in again.findings] == [
        (f.code, f.span, f.message) for f in result.findings
    ]
