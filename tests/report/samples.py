from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

from torchmemlint.engine.run import RunReport
from torchmemlint.findings import Applicability, Edit, Evidence, Finding, Fix, Position, Severity, Span
from torchmemlint.report import write

ROOT = Path("/project")

TRAIN = """\
import torch


def train(model, loader, optimizer):
    total = 0.0
    for x, y in loader:
        out = model(x)
        loss = torch.nn.functional.cross_entropy(out, y, label_smoothing=0.1, reduction="mean")
        total += loss
        loss.backward()
        optimizer.step()

    return total
"""

EVALUATE = """\
def evaluate(model, loader):
\tmodel.eval()
\tdaten = "精度"; hits = sum((
\t\tmodel(x).argmax(1) == y
\t\tfor x, y in loader
\t))
\treturn hits
"""


def span(row: int, column: int, end_row: int, end_column: int) -> Span:
    return Span(Position(row, column), Position(end_row, end_column))


def accumulation() -> Finding:
    return Finding(
        "TML101",
        "graph-accumulation",
        Severity.ERROR,
        "`loss` is added to `total` with its graph, which stays alive from one iteration to the next",
        ROOT / "src/train.py",
        span(9, 9, 9, 22),
        span(9, 9, 9, 22),
        (
            Evidence("`model` is an `nn.Module`, so its output carries a graph", span(7, 15, 7, 23)),
            Evidence("the graph goes on through `cross_entropy`", span(8, 16, 8, 95)),
            Evidence("`meter` keeps its argument", span(3, 9, 3, 20), ROOT / "src/meter.py"),
            Evidence("`total` outlives the iteration", span(5, 5, 5, 16)),
        ),
        Fix("detach `loss`", Applicability.SAFE, (Edit(span(9, 22, 9, 22), ".detach()"),)),
        "Every activation of every step stays on the device.",
        fingerprint="0123456789abcdef",
    )


def evaluation() -> Finding:
    return Finding(
        "TML201",
        "eval-without-no-grad",
        Severity.WARNING,
        "evaluation runs with gradients on",
        ROOT / "src/evaluate.py",
        span(3, 24, 6, 4),
        span(3, 2, 6, 4),
        (Evidence("`model` is put in evaluation mode", span(2, 2, 2, 14)),),
        Fix(
            "turn gradients off",
            Applicability.UNSAFE,
            (Edit(span(1, 1, 1, 1), "import torch\n\n\n@torch.no_grad()\n"),),
        ),
        "Activations are kept for a backward that never comes.",
        fingerprint="fedcba9876543210",
    )


def loader() -> Finding:
    return Finding(
        "TML401",
        "loader-without-workers",
        Severity.ADVICE,
        "batches are made in the training process",
        ROOT / "src/train.py",
        span(6, 17, 6, 23),
        span(6, 5, 6, 24),
        (),
        Fix("pass `num_workers=`", Applicability.HINT),
    )


SOURCES = {
    ROOT / "src/train.py": TRAIN,
    ROOT / "src/evaluate.py": EVALUATE,
    ROOT / "src/meter.py": "class Meter:\n    def update(self, value):\n        self.values.append(value)\n",
}


def lines_of(path: Path) -> list[str]:
    return SOURCES[path].split("\n") if path in SOURCES else []


def report(*findings: Finding, **changes: Any) -> RunReport:
    base = RunReport(findings, files_checked=3, files_skipped=1, fixed=(), sources=lines_of)
    return replace(base, **changes)


def render(report: RunReport, output_format: str, *, color: bool = False, statistics: bool = False) -> str:
    stream = io.StringIO()
    write(report, output_format, stream, color=color, root=ROOT, statistics=statistics)
    return stream.getvalue()
