"""Notebooks from their bytes to what is reported and written."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from torchmemlint.engine.one_file import FileResult, Fixing, Profile, check_file
from torchmemlint.findings import Applicability, Finding
from torchmemlint.fixes import apply
from torchmemlint.report.places import file_position, place

SELECTED = frozenset(("TML000", "TML001", "TML101", "TML201", "TML506"))

SETUP = "%matplotlib inline\n!pip install torch\nimport torch\nfrom torch import nn\nfiles = !ls"
MODEL = """\
model = nn.Linear(4, 1)
criterion = nn.MSELoss()

def step(x, y):
    return criterion(model(x), y)"""
TRAINING = """\
%%time
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = 0.0
for x, y in loader:
    loss = step(x, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss  # naïve
    !nvidia-smi \\
        --loop=1
print(total / len(loader))"""


def demonstration() -> nbformat.NotebookNode:
    """A loss that one cell's function computes and another cell's loop sums up."""
    image = new_output("display_data", {"image/png": "iVBORw0KGgo=" * 50})
    return new_notebook(
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}, "étoile": "☃"},
        cells=[
            new_markdown_cell("# Training\n\n`total += loss`"),
            new_code_cell(SETUP, execution_count=1),
            new_code_cell("%%bash\nfor f in *; do\n  echo $f\ndone"),
            new_code_cell(MODEL, execution_count=3),
            new_code_cell(TRAINING, execution_count=4, outputs=[image], metadata={"tags": ["train"]}),
            new_code_cell("total?"),
        ],
    )


def check(path: Path, fixing: Fixing = Fixing.NONE) -> FileResult:
    result = check_file(path, Profile(SELECTED, fixing=fixing))
    assert result.error is None, result.details
    return result


def where(finding: Finding) -> tuple[int | None, int, int]:
    found = place(finding, finding.span.start)
    return found.cell, found.row, found.column


def test_a_loss_accumulated_across_cells(tmp_path: Path) -> None:
    path = tmp_path / "training.ipynb"
    nbformat.write(demonstration(), path)
    before = path.read_bytes()

    (finding,) = check(path).findings
    assert (finding.code, where(finding)) == ("TML101", (5, 9, 5))
    assert any(place(finding, one.span.start).cell == 4 for one in finding.evidence)
    row = before.decode().splitlines()[file_position(finding, finding.span.start).row - 1]
    column = file_position(finding, finding.span.start).column
    assert row[column - 1 :].startswith("total += loss")

    result = check(path, Fixing.WRITE)
    assert result.findings == ()
    after = path.read_bytes()
    assert after == before.replace(b"total += loss  #", b"total += loss.detach()  #")
    assert after != before
    opened = nbformat.read(path, as_version=4)
    nbformat.validate(opened)
    assert opened.cells[4].source == TRAINING.replace("+= loss", "+= loss.detach()")
    assert check(path, Fixing.WRITE).fixed is None  # there is nothing left to do
    assert path.read_bytes() == after


def test_preview_leaves_the_file_alone_and_tells_the_cell(tmp_path: Path) -> None:
    path = tmp_path / "training.ipynb"
    nbformat.write(demonstration(), path)
    before = path.read_bytes()
    fixed = check(path, Fixing.PREVIEW).fixed
    assert fixed is not None
    assert fixed.cells is not None
    assert [(cell.number, cell.before) for cell in fixed.cells] == [(5, TRAINING)]
    assert path.read_bytes() == before


def test_one_bad_cell_does_not_hide_the_others(tmp_path: Path) -> None:
    notebook = demonstration()
    notebook.cells.insert(2, new_code_cell("x = 1\ndef half(:\n    pass"))
    path = tmp_path / "training.ipynb"
    nbformat.write(notebook, path)
    bad, loss = check(path).findings
    assert (bad.code, where(bad)) == ("TML000", (3, 2, 10))
    assert (loss.code, where(loss)) == ("TML101", (6, 9, 5))


def test_what_never_mentions_torch_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "n.ipynb"
    path.write_text("{ torch-free? no: not read at all".replace("torch", "t"))
    assert check(path).skipped
    cells = [new_code_cell("x = (", outputs=[new_output("stream", text="import torch")])]
    nbformat.write(new_notebook(cells=cells), path)
    assert check(path).skipped  # the word stands in an output
    path.write_text(json.dumps({"cells": [{"cell_type": "code", "source": "import torch\nx = ("}], "nbformat": 4}))
    (finding,) = check(path).findings
    assert where(finding) == (1, 2, 5)


def test_a_name_of_one_cell_is_not_deleted_since_another_may_be_run_again(tmp_path: Path) -> None:
    cells = [
        "import torch\nfrom torch import nn\nmodel = nn.Linear(4, 4_000_000).cuda()",
        "checkpoint = torch.load('model.pt', map_location='cuda')\nmodel.load_state_dict(checkpoint['model'])",
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\nfor x, y in loader:\n    optimizer.zero_grad()\n"
        "    nn.functional.mse_loss(model(x), y).backward()\n    optimizer.step()",
    ]
    path = tmp_path / "training.ipynb"
    nbformat.write(new_notebook(cells=list(map(new_code_cell, cells))), path)
    (finding,) = check(path).findings
    assert (finding.code, where(finding)) == ("TML506", (2, 1, 14))
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.HINT
    script = tmp_path / "training.py"
    script.write_text("\n".join(cells))
    (finding,) = check(script).findings
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.SAFE


def test_what_another_cell_releases_or_differentiates_is_not_reported(tmp_path: Path) -> None:
    cells = [
        "import torch\nfrom torch import nn\nmodel = nn.Linear(4, 1)",
        "losses = []\nfor x, y in loader:\n    losses.append(nn.functional.mse_loss(model(x), y))",
        "torch.stack(losses).sum().backward()",
    ]
    path = tmp_path / "training.ipynb"
    profile = Profile(frozenset(("TML101", "TML102", "TML108")))
    nbformat.write(new_notebook(cells=list(map(new_code_cell, cells))), path)
    with_backward = {finding.code for finding in check_file(path, profile).findings}
    nbformat.write(new_notebook(cells=list(map(new_code_cell, [*cells[:2], "print(losses)"]))), path)
    without = {finding.code for finding in check_file(path, profile).findings}
    assert "TML102" in without
    assert "TML102" not in with_backward


def test_what_is_switched_off_in_one_cell_is_off_in_the_next(tmp_path: Path) -> None:
    path = tmp_path / "evaluation.ipynb"
    model = "import torch\nmodel = torch.nn.Linear(4, 1)\nmodel.eval()"
    loop = "outputs = []\nfor x in loader:\n    outputs.append(model(x))\nprint(len(outputs))"
    for off, found in (("torch.set_grad_enabled(False)", 0), ("pass", 1), ("%time torch.set_grad_enabled(False)", 0)):
        nbformat.write(new_notebook(cells=list(map(new_code_cell, [model, off, loop]))), path)
        codes = [finding.code for finding in check(path).findings]
        assert codes.count("TML201") == found, off


def test_why_a_fix_is_taken_back_names_no_row_of_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apply, "_uncovers", lambda *_: False)
    cells = [
        "import torch\nG = torch.nn.Linear(4, 4)\noptimizer = torch.optim.SGD(G.parameters())",
        "samples = []\nfor x in loader:\n    optimizer.zero_grad()\n    G(x).sum().backward()\n    optimizer.step()\n"
        "    z = G(x)\n    samples.append(z)\nprint(samples)",
    ]
    path = tmp_path / "gan.ipynb"
    nbformat.write(new_notebook(cells=list(map(new_code_cell, cells))), path)
    fixed = check_file(path, Profile(frozenset(("TML102", "TML203")), fixing=Fixing.PREVIEW)).fixed
    assert fixed is not None
    ((finding, reason),) = fixed.rolled_back
    assert where(finding) == (2, 7, 5)
    assert "it would bring TML203" in reason
    assert "row" not in reason
