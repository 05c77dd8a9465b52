"""What is found in a notebook comes out of each format: by cell, or by row of the file's JSON."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from torchmemlint.config.resolver import Resolver
from torchmemlint.config.selection import Selection
from torchmemlint.engine.one_file import Fixing
from torchmemlint.engine.run import RunReport
from torchmemlint.engine.runner import Request, run
from torchmemlint.report import write, write_diff
from torchmemlint.report.formats import FORMATS

CELLS = [
    '"""Totals."""\nimport torch\nfrom torch.utils.data import DataLoader\n\n'
    'model, naïve = torch.nn.Linear(4, 1), "\\u00e9 \\t"\nloader = DataLoader(data, num_workers=2, pin_memory=True)',
    '%%time\ntotal = 0.0\nfor batch, note in loader:\n    if note != "a\\tb": total += model(batch).sum()\n',
    "    parts = []\n    for batch in loader:\n        parts.append(model(batch))\n",
    "print(total, parts)",
]
CODES = "TML101", "TML102"


def resolver(folder: Path) -> Resolver:
    return Resolver(folder, isolated=True, selection=Selection(CODES))


@pytest.fixture
def report(tmp_path: Path) -> RunReport:
    notebook = new_notebook(cells=[new_markdown_cell("# One"), *map(new_code_cell, CELLS)])
    nbformat.write(notebook, tmp_path / "n.ipynb")
    request = Request((tmp_path / "n.ipynb",), resolver(tmp_path), jobs=1)
    return run(request)


def shown(report: RunReport, output_format: str) -> str:
    (name,) = {finding.filename for finding in report.findings}
    stream = io.StringIO()
    write(report, output_format, stream, color=False, root=name.parent)
    return stream.getvalue()


def test_what_is_found(report: RunReport) -> None:
    assert tuple(finding.code for finding in report.findings) == CODES


def test_formats_for_reading_name_the_cell(report: RunReport) -> None:
    places = ["cell 3:4:24", "cell 4:3:9"]
    for name in ("full", "concise", "grouped"):
        text = shown(report, name)
        assert [text.count(place) for place in places] == [1, 1], name
    assert "n.ipynb:cell 3:4:24: TML101 [*] " in shown(report, "concise")


def test_full_shows_rows_of_the_cell_and_nothing_of_others(report: RunReport) -> None:
    text = shown(report, "full")
    assert '4 |     if note != "a\\tb": total += model(batch).sum()' in text
    assert "3 |         parts.append(model(batch))" in text  # with the margin that the whole cell has
    assert "import torch" not in text
    assert "# %%" not in text


def test_json_has_cells_and_is_what_its_schema_says(report: RunReport) -> None:
    document = json.loads(shown(report, "json-report"))
    schema = json.loads((Path(FORMATS["json-report"].lines.__code__.co_filename).parent / "schema.json").read_text())
    jsonschema.validate(document, schema)
    found = document["findings"]
    assert [(one["cell"], one["location"]["row"]) for one in found] == [(3, 4), (4, 3)]
    assert found[0]["fix"]["edits"][0]["cell"] == 3
    assert {evidence["cell"] for evidence in found[0]["evidence"]} == {3}


def region(text: str, begin: tuple[int, int], end: tuple[int, int]) -> str:
    rows = text.splitlines(keepends=True)
    starts = [sum(map(len, rows[:number])) for number in range(len(rows))]
    return text[starts[begin[0] - 1] + begin[1] - 1 : starts[end[0] - 1] + end[1] - 1]


def places(document: Any) -> list[tuple[int, int, int, int]]:
    return [
        (where["start"]["line"], where["start"]["column"], where["end"]["line"], where["end"]["column"])
        for where in (one["location"]["range"] for one in document["diagnostics"])
    ]


def test_formats_for_machines_have_places_in_the_file(report: RunReport) -> None:
    text = report.findings[0].filename.read_text()
    document = json.loads(shown(report, "rdjson"))
    found = [
        region(text, (a, len(text.splitlines()[a - 1].encode()[: b - 1].decode()) + 1), (c, d))
        for a, b, c, d in places(document)
    ]
    assert found == ["total += model(batch).sum()", "parts.append(model(batch))"]
    rows = [place[0] for place in places(document)]
    for name in "github gitlab pylint".split():
        out = shown(report, name)
        assert [int(row) for row in re.findall(r"(?:line=|begin\": |ipynb:)(\d+)", out)] == rows, name
        assert out.count("cell 3:4: ") >= 1, name


def test_a_suggestion_is_an_edit_of_the_json(report: RunReport, tmp_path: Path) -> None:
    """What a reviewer accepts comes to what `--fix` does."""
    path = tmp_path / "n.ipynb"
    rows = path.read_text().splitlines(keepends=True)
    for one in json.loads(shown(report, "rdjson"))["diagnostics"]:
        for suggestion in one["suggestions"]:
            start, end = suggestion["range"]["start"], suggestion["range"]["end"]
            assert start["line"] == end["line"]
            row = rows[start["line"] - 1].encode()
            new = row[: start["column"] - 1] + suggestion["text"].encode() + row[end["column"] - 1 :]
            rows[start["line"] - 1] = new.decode()
    run(Request((path,), resolver(tmp_path), Fixing.WRITE, jobs=1))
    assert path.read_text() == "".join(rows)


def test_sarif_has_the_same_fixes(report: RunReport) -> None:
    (log,) = json.loads(shown(report, "sarif"))["runs"]
    text = report.findings[0].filename.read_text()
    for result in log["results"]:
        assert result["message"]["text"].startswith("cell ")
        (replacement,) = result["fixes"][0]["artifactChanges"][0]["replacements"]
        where = replacement["deletedRegion"]
        assert where["startLine"] == where["endLine"]
        row = text.splitlines()[where["startLine"] - 1]
        new = row[: where["startColumn"] - 1] + replacement["insertedContent"]["text"] + row[where["endColumn"] - 1 :]
        assert json.loads(new.strip().rstrip(",")).endswith(".detach())\n" if "append" in row else ".detach()\n")


def test_every_format_tells_of_every_finding(report: RunReport) -> None:
    for name, one in FORMATS.items():
        if one.missing() is None:
            text = shown(report, name)
            assert all(finding.code in text for finding in report.findings), name


def test_diff_by_cell(tmp_path: Path, report: RunReport) -> None:
    fixed = run(Request((tmp_path / "n.ipynb",), resolver(tmp_path), Fixing.PREVIEW, jobs=1))
    stream = io.StringIO()
    write_diff(fixed, stream, color=False, root=tmp_path)
    rows = stream.getvalue().splitlines()
    assert [row for row in rows if row.startswith(("---", "+++"))] == [
        f"{sign} n.ipynb:cell {number}" for number in (3, 4) for sign in ("---", "+++")
    ]
    assert "+        parts.append(model(batch).detach())" in rows
