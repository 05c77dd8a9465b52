"""The report of `torchmemlint trace` in the terminal, from data made by hand. Needs no torch."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

from torchmemlint.report.trace import write_trace
from torchmemlint.runtime.holders import Holder
from torchmemlint.runtime.kinds import Kind
from torchmemlint.runtime.leaks import Leak
from torchmemlint.runtime.ledger import Site
from torchmemlint.runtime.results import End, LineBytes, RunResult
from torchmemlint.runtime.survivors import Accrual
from torchmemlint.runtime.trace_report import Timeline, Told, TracedLeak, TraceReport, leak_from_json, leak_to_json

ROOT = Path("/project")
KEPT = Site("/project/train.py", 12, "fit")
MADE = Site("/project/model.py", 5, "Net.forward")
HOLDER = Holder(
    "self.history",
    "attribute",
    "list",
    Site("/project/train.py", 1, "Trainer"),
    "",
    "Trainer",
    (KEPT,),
    False,
    40_960,
    20,
    20_480,
    20_480,
    ((MADE, 20_480),),
    None,
    20,
    20_480,
)
LEAK = Leak(
    Accrual("optimizer 1", 2048, 1, 17, 1.0, True), HOLDER, ((MADE, 2048.0),), ((Kind.SAVED, 40_960),), 40_960, 2560
)
RUN = RunResult(
    End.FINISHED,
    backend="simulated",
    description="simulated (a card)",
    torch="2.13.0",
    python="3.11.7",
    peak=65_536,
    peak_reserved=2_097_152,
    steps=20,
    kinds={"saved activation": 57_344},
    lines=(LineBytes("/project/model.py", 5, "Net.forward", 49_152, 20),),
)


def report(*leaks: TracedLeak) -> TraceReport:
    timeline = Timeline(20, ("optimizer 1",), {"parameter": (64,) * 4, "other": (0, 32, 64, 64)})
    return TraceReport("train.py", "/project", RUN, leaks, (), timeline)


def shown(what: TraceReport) -> str:
    stream = io.StringIO()
    write_trace(what, stream, color=False, root=ROOT)
    return stream.getvalue()


def test_a_leak_with_all_that_is_known() -> None:
    told = Told("TML102", "/project/train.py", 12, "a graph is kept")
    assert (
        shown(report(TracedLeak(LEAK, (told,))))
        == """\
trace train.py
simulated (a card); torch 2.13.0, Python 3.11.7, 20 steps, seed 0

1  train.py:12 in fit  +2.0 KiB per step of optimizer 1
    grows    2,048 B, 1 storages, the same in 17 turns
    blocks   2,560 B of the allocator's blocks
    kept by  self.history: list of 20 (attribute of Trainer), directly and by graphs
    made at  model.py:5 (2.0 KiB)
    graph    saved for a backward at model.py:5
    kinds    saved activation 40.0 KiB
    rule     TML102 at train.py:12: a graph is kept

Held at the end of each step of optimizer 1 (20)
    parameter  ████  64 B
    other      ▁▄██  64 B

Lines at the peak of 64.0 KiB, 2.0 MiB reserved
    48.0 KiB   75%  model.py:5
    8.0 KiB    12%  other lines
    8.0 KiB    12%  in no tensor: cuBLAS's workspaces, and rounding to blocks

1 line lets memory grow.
"""
    )


def test_what_no_rule_knows_is_said() -> None:
    one = TracedLeak(LEAK, ())
    assert "rule     none has a finding for it" in shown(report(one))
    assert "1 line lets memory grow; no rule has a finding for it." in shown(report(one))
    assert report(one, TracedLeak(LEAK, (Told("TML102", "a", 1, ""),))).unknown == (one,)


def test_nothing_grows() -> None:
    assert shown(report()).endswith("\nNo growth from step to step in 20 steps.\n")


def test_memory_ran_out() -> None:
    failed = replace(
        RUN, out_of_memory="/project/train.py:12", error="torch.OutOfMemoryError: CUDA out of memory. Tried"
    )
    told = shown(replace(report(), run=failed))
    assert "\nout of memory at train.py:12: CUDA out of memory. Tried\n" in told
    assert told.endswith("\nMemory ran out; nothing grew from step to step in 20 steps.\n")
    soon = shown(replace(report(), run=replace(failed, steps=3)))
    assert soon.endswith("\nMemory ran out; too few turns to tell what grows.\n")


def test_json_goes_back_to_data() -> None:
    assert leak_from_json(leak_to_json(LEAK)) == LEAK
    values = report(TracedLeak(LEAK, ())).to_json()
    assert values["growing"]
    assert values["leaks"][0]["line"] == {"path": "/project/train.py", "line": 12, "function": "fit"}
