"""The same findings come out of every format: of the fixtures, and of files and messages that are out to break one."""

from __future__ import annotations

import io
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from torchmemlint.engine.run import RunReport
from torchmemlint.findings import Evidence, Finding
from torchmemlint.report import write
from torchmemlint.report.formats import FORMATS
from torchmemlint.report.places import absolute_path

from .readers import READERS, Found
from .samples import accumulation, evaluation, loader, span

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
ROOT = FIXTURES.parent
SEVERAL_ROWS = "github"  # has no columns for them


def written(report: RunReport, root: Path, name: str) -> str:
    stream = io.StringIO()
    write(report, name, stream, color=False, root=root)
    return stream.getvalue()


def expected(report: RunReport, root: Path, name: str) -> list[Found]:
    """What a format should hold of a report, as far as it can."""
    found = []
    for finding in report.findings:
        start, end = finding.span.start, finding.span.end
        several = start.row != end.row
        column = None if name == "pylint" or (name == SEVERAL_ROWS and several) else start.column
        path = absolute_path(finding.filename, root).relative_to(root).as_posix()
        found.append(Found(path, start.row, column, finding.code))
    return found


def assert_same(report: RunReport, root: Path, name: str) -> None:
    found = READERS[name](written(report, root, name), root)
    assert sorted(found, key=str) == sorted(expected(report, root, name), key=str)


def test_every_format_has_a_reader() -> None:
    assert set(FORMATS) <= set(READERS)


@pytest.fixture(scope="module")
def of_fixtures() -> RunReport:
    from torchmemlint.config.resolver import Resolver
    from torchmemlint.engine.runner import Request, run

    chosen: list[Path] = []
    for folder in sorted(FIXTURES.iterdir()):
        bad = sorted(file for file in folder.rglob("bad_*.py") if ".fixed" not in file.name)
        chosen += bad[:1] + bad[-1:]
    return run(Request(tuple(sorted(set(chosen))), Resolver(ROOT, isolated=True)))


@pytest.mark.parametrize("name", FORMATS)
def test_of_the_fixtures(of_fixtures: RunReport, name: str) -> None:
    assert len(of_fixtures.findings) > 100
    assert len({finding.code for finding in of_fixtures.findings}) > 25
    assert_same(of_fixtures, ROOT, name)


NAMES = (
    "two words.py",
    "genauigkeit ä 精度 𐐀.py",
    "100%.py",
    "%41%0A.py",
    "a&b&amp;.py",
    "<b>.py",
    "a,b=c.py",
    "a:b.py",
    "a::b.py",
    "a`b`.py",
    "``.py",
    "a|b.py",
    """quotes'"'.py""",
    "a#b?c.py",
    "[x](y).py",
    "_x_ *y* ~~z~~.py",
    "back\\slash.py",
    "@torch #1.py",
    "sub folder/ü/[1].py",
)
MESSAGES = (
    "two\nlines",
    "\r\n\ttabs\x0b\x0c and\u2028more",
    "::error file=x::y",
    "100%, 50%25 and %0A",
    "a | b || `c | d`",
    "`one backtick, **bold** _it_ <b>x</b> &amp; <!-- -->",
    "``two`` ` ",
    "]]> <script>alert(1)</script> </script>",
    "\x1b[31mred\x00\x7f",
    "half of a pair: \ud800",
    "not a character: \ufffe\uffff",
    "`losses[i](x)` and [a](b) and [c](1)",
    "@user #1 http://example.com/ $x$",
    "'single' \"double\" \\ {{ x }} {% y %}",
    "x" * 5000,
)


@pytest.fixture
def hostile(tmp_path: Path) -> RunReport:
    """A file for each name, a finding for each message, behind characters of several bytes."""
    line = "精 = '𐐀'; LEAK"
    findings: list[Finding] = []
    for name in NAMES:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join([line] * (len(MESSAGES) + 3)) + "\n", encoding="utf-8")
        for row, message in enumerate(MESSAGES, 1):
            kind = (accumulation(), evaluation(), loader())[row % 3]
            place = span(row, 10, row + row % 2, 14)
            chain = (Evidence(message, span(1, 1, 1, 2)), Evidence(message, place, tmp_path / NAMES[row]))
            changes = {"filename": file, "span": place, "statement": place, "message": message, "evidence": chain}
            findings.append(replace(kind, **changes, why=message, fix=None))  # type: ignore[arg-type]
    findings.sort(key=lambda finding: (str(finding.filename), finding.span))
    return RunReport(tuple(findings), len(NAMES), 0, (), sources=lambda path: [line] * (len(MESSAGES) + 3))


@pytest.mark.parametrize("name", FORMATS)
def test_of_names_and_messages_that_mean_something_to_a_format(hostile: RunReport, tmp_path: Path, name: str) -> None:
    assert_same(hostile, tmp_path, name)
    written(hostile, tmp_path, name).encode("utf-8")


@pytest.mark.parametrize("name", FORMATS)
def test_of_names_that_no_format_has_a_form_for(tmp_path: Path, name: str) -> None:
    """A newline in a name, and bytes that are no characters: nothing is lost, no line is made two."""
    strange = [tmp_path / "two\nlines\x1b.py", tmp_path / os.fsdecode(b"\xff\xfe.py")]
    findings = tuple(replace(accumulation(), filename=file, evidence=(), fix=None) for file in strange)
    report = RunReport(findings, 2, 0, (), sources=lambda path: [])
    text = written(report, tmp_path, name)
    assert "\x1b" not in text or name == "github"  # which needs the file's own name
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    write(report, name, stream, color=False, root=tmp_path)  # and the stream takes it
    assert len(READERS[name](text, tmp_path)) == 2


@pytest.mark.parametrize("name", FORMATS)
def test_of_nothing(tmp_path: Path, name: str) -> None:
    report = RunReport((), 3, 1, (), sources=lambda path: [])
    assert_same(report, tmp_path, name)
    assert written(report, tmp_path, name) or name in ("json-lines", "github", "azure", "pylint")


@pytest.mark.parametrize("name", FORMATS)
def test_of_files_that_cannot_be_read_or_parsed(tmp_path: Path, name: str) -> None:
    from torchmemlint.config.resolver import Resolver
    from torchmemlint.engine.runner import Request, run

    (tmp_path / "syntax.py").write_text("import torch\ndef f(:\n")
    (tmp_path / "bytes.py").write_bytes(b"import torch\n# \xff\n")
    (tmp_path / "link.py").symlink_to("nowhere.py")
    report = run(Request(tuple(sorted(tmp_path.iterdir())), Resolver(tmp_path, isolated=True)))
    assert [finding.code for finding in report.findings] == ["TML000"] * 3
    assert_same(report, tmp_path, name)


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_outside_of_the_root(tmp_path: Path, name: str) -> None:
    finding = replace(accumulation(), filename=tmp_path / "b" / "x.py", evidence=(), fix=None)
    report = RunReport((finding,), 1, 0, (), sources=lambda path: [])
    (found,) = READERS[name](written(report, tmp_path / "a", name), tmp_path / "a")
    assert (found.path, found.row, found.code) == (str(tmp_path / "b" / "x.py"), 9, "TML101")


CELLS = (
    "import torch\nfrom torch import nn\nmodel = nn.Linear(4, 1)\n",
    "%matplotlib inline\n",
    "total = 0\nfor x, y in data:\n    loss = (model(x) - y).sum()\n    loss.backward()\n    'é'; total += loss\n",
    "print(total.item())",
)
PEOPLE = {"full", "concise", "grouped", "junit", "markdown", "html"}


@pytest.fixture
def notebook(tmp_path: Path) -> RunReport:
    from torchmemlint.config.resolver import Resolver
    from torchmemlint.engine.runner import Request, run

    cells = [{"cell_type": "markdown", "metadata": {}, "source": ["# Training"]}]
    for text in CELLS:
        code = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
        cells.append({**code, "source": text.splitlines(keepends=True)})
    contents = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "a.ipynb").write_text(json.dumps(contents, indent=1))
    return run(Request((tmp_path / "a.ipynb",), Resolver(tmp_path, isolated=True)))


@pytest.mark.parametrize("name", FORMATS)
def test_of_a_notebook(notebook: RunReport, tmp_path: Path, name: str) -> None:
    """Who reads code is told the cell; what shows files is told the row of the file."""
    assert [finding.code for finding in notebook.findings] == ["TML101"]
    text = written(notebook, tmp_path, name)
    if name in PEOPLE:
        assert "cell 4:5:10" in text
    elif name.startswith("json"):
        found = json.loads(text)
        listed = {"json-lines": lambda: [found], "json": lambda: found, "json-report": lambda: found["findings"]}[
            name
        ]()
        assert listed[0]["cell"] == 4
    else:
        (found,) = READERS[name](text, tmp_path)
        row = (tmp_path / "a.ipynb").read_text().splitlines()[found.row - 1]
        assert row.lstrip().startswith("\"    '")
        assert found.column is None or row[found.column - 1 :].startswith("total +=")
