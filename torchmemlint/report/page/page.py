"""Fills the page for `verify` and `trace`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torchmemlint import __version__
from torchmemlint.report.faces import faces
from torchmemlint.report.page import chart
from torchmemlint.report.places import shown_path, shown_place
from torchmemlint.report.trace import leak_texts
from torchmemlint.runtime.kinds import Kind
from torchmemlint.runtime.results import RunResult
from torchmemlint.runtime.trace_report import TraceReport
from torchmemlint.runtime.verification import FindingResult, VerifyReport
from torchmemlint.sizes import format_size

KINDS = tuple(kind.label for kind in Kind)
_LINES = 15


def missing_jinja() -> str | None:
    """What to tell a user who has no jinja2; None where it can be imported."""
    from importlib.util import find_spec

    return None if find_spec("jinja2") else "an HTML report needs jinja2: pip install 'torchmemlint[verify]'"


def verification_page(report: VerifyReport, root: Path) -> str:
    """The page of a verification; paths as seen from `root`."""
    return _render(
        "verify",
        report.program,
        report.before,
        root,
        findings=[_finding(one, root) for one in report.findings],
        together=report.together,
        together_fixes=report.together_fixes,
        notes=report.notes,
    )


def trace_page(report: TraceReport, root: Path) -> str:
    """The page of a trace; paths as seen from `root`."""
    return _render("trace", report.program, report.run, root, leaks=leak_texts(report, root), notes=report.notes)


def environment(root: Path) -> Any:
    """What fills the templates of this folder, with sizes and paths (as seen from `root`) for people."""
    import jinja2

    from torchmemlint.report.html.frames import message

    made = jinja2.Environment(
        loader=jinja2.PackageLoader("torchmemlint.report.page", "."),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"size": format_size, "path": lambda path: shown_path(Path(path), root)}
    made.filters["message"] = message
    made.globals |= {"share": chart.share, "kinds": KINDS, "version": __version__}
    return made


def _render(command: str, program: str, run: RunResult, root: Path, **more: Any) -> str:
    values: Mapping[str, Any] = {
        "command": command,
        "program": program,
        "run": run,
        "faces": list(faces(run)),
        "chart": chart.stacked(run.curve, KINDS),
        "lines": run.lines[:_LINES],
        "more_lines": max(0, len(run.lines) - _LINES),
        "growing_lines": run.growing_lines[:_LINES],
    }
    return str(environment(root).get_template("page.html.jinja").render(**values, **more))


def _finding(one: FindingResult, root: Path) -> dict[str, Any]:
    found = one.finding
    return {
        "code": found["code"],
        "name": found["name"],
        "message": found["what"],
        "place": shown_place(found["filename"], found["location"]["row"], root),
        "verdict": one.verdict.value,
        "costs": one.costs,
        "comparison": one.comparison,
        "note": one.note,
    }
