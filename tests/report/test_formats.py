from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from torchmemlint.engine.run import FixedFile, RunReport
from torchmemlint.findings import Evidence, Finding, Severity
from torchmemlint.measured import Measured, Verdict
from torchmemlint.report import write, write_diff
from torchmemlint.report.columns import text_width
from torchmemlint.report.formats import FORMATS

from .samples import ROOT, accumulation, evaluation, loader, render, report, span

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize("output_format", ["full", "concise"])
def test_text(everything: RunReport, output_format: str, snapshot: SnapshotAssertion) -> None:
    assert render(everything, output_format) == snapshot


def test_full_in_colour(snapshot: SnapshotAssertion) -> None:
    assert render(report(accumulation()), "full", color=True) == snapshot


@pytest.mark.parametrize("output_format", ["full", "concise"])
def test_colour_changes_nothing_but_colour(everything: RunReport, output_format: str) -> None:
    painted = render(everything, output_format, color=True)
    assert painted != render(everything, output_format)
    assert ESCAPE.sub("", painted) == render(everything, output_format)


def test_statistics(snapshot: SnapshotAssertion) -> None:
    findings = [accumulation(), accumulation(), evaluation(), loader()]
    assert render(report(*findings), "full", statistics=True) == snapshot


def test_nothing_found() -> None:
    for output_format in ("full", "concise"):
        assert render(report(), output_format) == "All checks passed!\n"
    assert json.loads(render(report(), "json")) == []


def test_nothing_passes_where_a_file_could_not_be_checked() -> None:
    failed = report(errors=("train.py: internal error: KeyError: 'x'",))
    for output_format in ("full", "concise", "grouped", "markdown"):
        assert "passed" not in render(failed, output_format)
    assert render(failed, "concise") == "Not everything could be checked.\n"
    found = report(accumulation(), errors=failed.errors)
    assert render(found, "concise").endswith("\nFound 1 problem (1 error) in 1 file.\n[*] 1 fixable with --fix.\n")


def test_quiet_leaves_the_summary_out() -> None:
    assert render(report(accumulation(), show_summary=False), "concise") == (
        "src/train.py:9:9: TML101 [*] `loss` is added to `total` with its graph,"
        " which stays alive from one iteration to the next (see src/meter.py:3)\n"
    )
    assert render(report(show_summary=False), "full") == ""


def test_unsafe_fixes_count_where_they_are_asked_for() -> None:
    asked = report(evaluation(), accumulation(), unsafe_fixes=True)
    assert render(asked, "concise").endswith("(1 error, 1 warning) in 2 files.\n[*] 2 fixable with --fix.\n")
    only_unsafe = report(evaluation())
    assert render(only_unsafe, "concise").endswith("in 1 file.\n[-] 1 fixable with --fix --unsafe-fixes.\n")
    assert "fixable" not in render(report(loader()), "concise")


def fixed_file(*rolled_back: tuple[Finding, str]) -> FixedFile:
    before = "import torch\r\ntotal += loss\r\nend"
    return FixedFile(
        ROOT / "src/train.py", before, before.replace("loss", "loss.detach()"), (accumulation(),), rolled_back
    )


def test_summary_of_a_fixing_run() -> None:
    done = report(fixed=(fixed_file(),), fixes_applied_to_disk=True)
    assert render(done, "full") == "Fixed 1 problem in 1 file.\nNothing is left.\n"
    finding = evaluation()
    back = fixed_file((finding, "TML201 would still be reported"))
    rest = report(finding, fixed=(back,), fixes_applied_to_disk=True, unsafe_fixes=True)
    assert render(rest, "concise").splitlines()[1:] == [
        "Not fixed src/train.py:3:24: TML201: TML201 would still be reported",
        "Fixed 1 problem in 1 file.",
        "Found 1 problem (1 warning) in 1 file.",
    ]
    counted = json.loads(render(rest, "json-report"))["summary"]  # a fix that was taken back is none
    assert counted["fixable"] == {"safe": 0, "unsafe": 0}
    assert [rule["fixable"] for rule in counted["rules"]] == [0]
    assert "Would fix 1 problem in 1 file." in render(report(fixed=(fixed_file(),)), "full")


def test_a_diff_that_patch_can_read() -> None:
    stream = io.StringIO(newline="")
    write_diff(report(fixed=(fixed_file(),)), stream, color=False, root=ROOT)
    assert stream.getvalue() == (
        "--- src/train.py\n+++ src/train.py\n@@ -1,3 +1,3 @@\n import torch\r\n"
        "-total += loss\r\n+total += loss.detach()\r\n end\n\\ No newline at end of file\n"
    )


def test_paths_outside_the_root_are_given_as_they_are() -> None:
    elsewhere = replace(accumulation(), filename=Path("/elsewhere/a.py"))
    assert render(report(elsewhere), "concise").startswith("/elsewhere/a.py:9:9: ")
    relative = replace(accumulation(), filename=Path("src/train.py"))
    assert render(report(relative), "concise").startswith("src/train.py:9:9: ")


def test_a_finding_whose_source_is_gone_is_still_reported() -> None:
    gone = Finding(
        "TML000",
        "unreadable-file",
        Severity.ERROR,
        "permission denied",
        ROOT / "gone.py",
        span(1, 1, 1, 1),
        span(1, 1, 1, 1),
        (Evidence("seen here", span(7, 1, 7, 2)),),
    )
    elsewhere = Evidence("and there", span(9, 1, 9, 2), ROOT / "lost.py")
    lines = render(report(gone), "full").splitlines()
    assert lines[:5] == [
        "TML000 unreadable-file (error): permission denied",
        " --> gone.py:1:1",
        "  = line 7: seen here",
        "  = learn more: https://torchmemlint.readthedocs.io/rules/TML000/",
        "",
    ]
    both = render(report(replace(gone, evidence=(*gone.evidence, elsewhere))), "full").splitlines()
    assert both[2:4] == ["  = line 7: 1. seen here", "  = lost.py:9: 2. and there"]


def test_a_stream_that_knows_only_ascii(everything: RunReport) -> None:
    for output_format in FORMATS:
        raw = io.BytesIO()
        stream = io.TextIOWrapper(raw, encoding="ascii")
        write(everything, output_format, stream, color=False, root=ROOT)
        stream.flush()
        assert raw.getvalue().decode("ascii")
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    write(everything, "full", stream, color=False, root=ROOT)
    stream.flush()
    assert b'daten = "\\u7cbe\\u5ea6"' in raw.getvalue()


def test_messages_cannot_reach_the_terminal() -> None:
    nasty = replace(accumulation(), message="two\nlines and \x1b[2J an escape")
    for output_format in ("full", "concise"):
        text = render(report(nasty), output_format)
        assert "\x1b" not in text
        assert "two lines and ␛[2J an escape" in text


def test_a_measured_figure_stands_before_the_fix_and_before_the_place_elsewhere() -> None:
    told = Measured(Verdict.CONFIRMED, "simulated", "A100 40GB", "2.13.0", "2026-11-21", "train.py", 50331648.0, 0, 0)
    finding = replace(accumulation(), measured=told)
    lines = [line.strip() for line in render(report(finding), "full").splitlines()]
    place = lines.index("= measured: +48.0 MiB per step (simulated A100 40GB, 2026-11-21)")
    assert lines[place - 1].startswith("= why: ")
    assert lines[place + 2].startswith("= fix (safe): ")
    assert render(report(finding, show_summary=False), "concise").endswith(
        "to the next (measured: +48.0 MiB per step, simulated) (see src/meter.py:3)\n"
    )


def test_each_rule_says_once_where_to_learn_more() -> None:
    text = render(report(accumulation(), replace(accumulation(), span=span(10, 9, 10, 22)), evaluation()), "full")
    assert text.count("learn more: https://torchmemlint.readthedocs.io/rules/TML101/\n") == 1
    assert text.count("learn more: ") == 2


def test_many_findings_end_with_a_count_for_each_rule() -> None:
    many = [replace(accumulation(), span=span(row, 1, row, 2), evidence=()) for row in range(1, 12)]
    text = render(report(*many, evaluation()), "full")
    assert "\n  11  TML101  [*] graph-accumulation\n   1  TML201  [ ] eval-without-no-grad\n" in text
    assert "By rule" not in render(report(*many), "full")  # it is all of one
    assert "By rule" not in render(report(*many[:9], evaluation()), "full")
    assert "By rule" not in render(report(*many, evaluation(), show_summary=False), "full")


def wrapped(found: RunReport, width: int, *, links: bool = False) -> list[str]:
    stream = io.StringIO()
    write(found, "full", stream, color=False, root=ROOT, width=width, links=links)
    return stream.getvalue().splitlines()


@pytest.mark.parametrize("width", [60, 80, 120])
def test_lines_keep_to_the_terminal(everything: RunReport, width: int) -> None:
    """But for what a fix changes, and what cannot be parted."""
    lines = wrapped(everything, width)
    free = ("| -", "| +", "learn more")
    assert not [line for line in lines if text_width(line) > width and not any(word in line for word in free)]
    assert " ".join(" ".join(lines).split()).count("stays alive from one iteration to the next") == 1
    if width == 60:
        assert "   |               1. `model` is an `nn.Module`, so its" in lines


def test_links(everything: RunReport) -> None:
    linked = "\n".join(wrapped(everything, 80, links=True))
    assert "\x1b]8;;https://torchmemlint.readthedocs.io/rules/TML101/\x1b\\TML101\x1b]8;;\x1b\\ [*]" in linked
    assert "\x1b]8;;file:///project/src/train.py\x1b\\src/train.py:9:9\x1b]8;;\x1b\\" in linked
    assert "\x1b" not in "\n".join(wrapped(everything, 80))


def test_names_of_files_cannot_reach_the_terminal_either() -> None:
    finding = replace(accumulation(), filename=ROOT / "a\x1b[2J\nb.py", evidence=())
    advice = replace(loader(), filename=ROOT / "c\x1b[2J\nd.py")
    many = [replace(finding, span=span(row, 9, row, 22)) for row in range(1, 9)]
    elsewhere = replace(evaluation(), evidence=(Evidence("here", span(1, 1, 1, 2), finding.filename),))
    for output_format in ("full", "concise", "grouped", "pylint", "markdown"):
        text = render(report(*many, advice, elsewhere, folds=True), output_format)
        assert "\x1b" not in text
        assert "a␛[2J␊b.py" in text
