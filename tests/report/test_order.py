from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from torchmemlint.amounts import Amount
from torchmemlint.findings import Finding, Severity
from torchmemlint.measured import Measured, Verdict
from torchmemlint.report import order
from torchmemlint.report.paint import Paint

from .samples import ROOT, accumulation, evaluation, loader, render, report, span


def at(finding: Finding, row: int, **changes: object) -> Finding:
    return replace(finding, span=span(row, 1, row, 5), statement=span(row, 1, row, 5), **changes)  # type: ignore[arg-type]


def told(**figures: float) -> Measured:
    return Measured(Verdict.CONFIRMED, "cpu", "", "2.13", "2026-01-01", "train.py", **figures)  # type: ignore[arg-type]


def in_order(*findings: Finding, folds: bool = True) -> list[tuple[str, int]]:
    return [
        (finding.code, finding.span.start.row)
        for in_full, repeated in order.shown(report(*findings, folds=folds))
        for finding in (*in_full, *repeated)
    ]


def test_severity_comes_before_place() -> None:
    advice = at(loader(), 1)
    assert in_order(evaluation(), accumulation(), advice, folds=False) == [("TML101", 9), ("TML201", 3), ("TML401", 1)]


def test_what_costs_more_comes_first() -> None:
    cheap = at(evaluation(), 1, measured=told(peak=1_000_000))
    dear = at(evaluation(), 9, measured=told(per_step=5_000.0))
    unknown = at(evaluation(), 2)
    assert [row for _, row in in_order(cheap, unknown, dear)] == [9, 1, 2]


def test_rules_of_one_severity_are_not_mixed() -> None:
    other = replace(evaluation(), code="TML105", filename=ROOT / "src/z.py")
    assert in_order(evaluation(), other) == [("TML105", 3), ("TML201", 3)]


def folded(*findings: Finding) -> str:
    return "".join(
        f"{line}\n" for line in order.folded_lines(order.folded(report(*findings, folds=True)), ROOT, Paint(False))
    )


def test_the_same_advice_is_one_line_for_the_project() -> None:
    many = [at(loader(), row) for row in range(1, 10)]
    once = at(loader(), 4, filename=ROOT / "src/evaluate.py")
    same_file = [at(replace(loader(), code="TML402", name="loader-unpinned"), row) for row in range(6, 15)]
    text = folded(once, *many, *same_file)
    assert "  src/evaluate.py:4  TML401 loader-without-workers, and 9 more in 1 file\n" in text
    assert "  src/train.py:6     TML402 loader-unpinned, and 8 more: lines 7, 8, 9, 10, 11, 12, …\n" in text
    assert text.index("src/evaluate.py:4") < text.index("src/train.py:6")  # the most frequent first
    assert text.count("\n    batches are made in the training process\n") == 2  # what each says, once


def test_advice_about_the_most_bytes_comes_first_and_that_about_loading_last() -> None:
    many = [at(loader(), row) for row in range(1, 10)]
    graph = at(replace(loader(), code="TML203"), 3)
    large = at(replace(loader(), code="TML501", amount=Amount(2**20)), 3)
    text = folded(*many, graph, large)
    assert text.index("TML501") < text.index("TML203") < text.index("TML401")


def test_folded_advice_never_fills_a_screen() -> None:
    text = folded(*(at(replace(loader(), code=f"TML4{number:02}"), 3) for number in range(20)))
    assert len(text.splitlines()) == 2 * order.LINES + 4
    assert f"  … and {20 - order.LINES} more from {20 - order.LINES} other rules\n" in text
    text = folded(*(at(replace(loader(), code=f"TML4{number:02}"), 3) for number in range(order.LINES + 1)))
    assert f"TML4{order.LINES:02}" in text  # a line that counts one more would take its place
    assert "… and" not in text


def source(lines: int) -> Callable[[Path], list[str]]:
    """What reads files that have so many lines."""
    return lambda path: [""] * lines


def test_there_is_a_line_of_advice_for_each_thousand_lines_of_code() -> None:
    findings = [at(loader(), 3), at(loader(), 4), at(loader(), 4, filename=ROOT / "src/evaluate.py")]
    for lines, room in ((10, 1), (999, 1), (1000, 2), (1_000_000, order.LINES)):
        assert order.room(replace(report(*findings), sources=source(lines))) == room


def test_advice_that_was_measured_to_cost_something_is_shown() -> None:
    dear = at(loader(), 6, measured=told(peak=4096))
    nothing = at(loader(), 7, measured=told())
    text = render(report(dear, nothing, folds=True), "full")
    assert "batches are made in the training process" in text
    assert "TML401" in text


def test_what_a_rule_repeats_in_a_file_gets_a_line_each() -> None:
    found = [at(accumulation(), row, evidence=()) for row in range(1, 11)]
    text = render(report(*found, folds=True), "full")
    assert text.count("graph-accumulation (error):") == order.IN_FULL
    assert "TML101 graph-accumulation, 7 more in this file (--no-fold shows all in full):\n" in text
    for finding in found[order.IN_FULL :]:
        assert f"  src/train.py:{finding.span.start.row}:1 [*] {finding.message}\n" in text
    assert render(report(*found), "full").count("graph-accumulation (error):") == len(found)


def test_one_more_is_shown_rather_than_announced() -> None:
    found = [at(accumulation(), row, evidence=()) for row in range(1, order.IN_FULL + 2)]
    assert render(report(*found, folds=True), "full") == render(report(*found), "full")


def test_other_formats_are_complete_and_in_order() -> None:
    findings = (evaluation(), *(at(loader(), row) for row in range(1, 8)), accumulation())
    for output_format in ("concise", "json"):
        folding, plain = (
            render(report(*findings, folds=folds), output_format)  # type: ignore[arg-type]
            for folds in (True, False)
        )
        assert folding == plain
        assert folding.count("TML401") >= 7


def test_nothing_to_fold_says_nothing() -> None:
    assert list(order.folded_lines([], Path(), Paint(False))) == []
    assert all(finding.severity is not Severity.ADVICE for finding in (accumulation(), evaluation()))
    assert "Advice" not in render(report(accumulation(), evaluation(), folds=True), "full")
