"""Two measured runs against each other, and runs against a budget: from JSON as `trace` and `verify` write it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import markdown_it
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmemlint.cli.main import main
from torchmemlint.config.errors import ConfigError
from torchmemlint.runtime.budget import Budget, read_budget
from torchmemlint.runtime.changes import Changes, Function, Usage, read_usage
from torchmemlint.runtime.growth import Growth
from torchmemlint.runtime.kinds import Kind
from torchmemlint.runtime.leaks import Leak
from torchmemlint.runtime.ledger import Site
from torchmemlint.runtime.results import End, LineBytes, RunResult, SeriesGrowth
from torchmemlint.runtime.survivors import Accrual
from torchmemlint.runtime.trace_report import Timeline, TracedLeak, TraceReport

MIB = 1 << 20
RUN = RunResult(
    End.FINISHED,
    backend="simulated",
    description="simulated (a card)",
    torch="2.13.0",
    peak=100 * MIB,
    peak_reserved=120 * MIB,
    steps=20,
    lines=(
        LineBytes("/project/train.py", 12, "fit", 40 * MIB, 3),
        LineBytes("/project/train.py", 14, "fit", 20 * MIB, 3),
        LineBytes("/elsewhere/net.py", 5, "Net.forward", 30 * MIB, 1),
    ),
)


def leak(line: int, per_turn: int, function: str = "fit") -> TracedLeak:
    site = Site("/project/train.py", line, function)
    grown = Accrual("optimizer 1", per_turn, 1, 17, 1.0, True)
    return TracedLeak(Leak(grown, None, ((site, per_turn),), ((Kind.OTHER, per_turn),), per_turn), ())


def told(folder: Path, name: str, run: RunResult = RUN, *leaks: TracedLeak) -> str:
    report = TraceReport("train.py", "/project", run, leaks, (), Timeline(0, (), {}))
    (folder / name).write_text(json.dumps(report.to_json()))
    return str(folder / name)


def test_lines_that_moved_are_the_same_function(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    moved = tuple(replace(line, line=line.line + 100) for line in RUN.lines)
    before, after = (
        told(tmp_path, "a.json", RUN, leak(12, 4096)),
        told(tmp_path, "b.json", replace(RUN, lines=moved), leak(112, 4096)),
    )
    assert main(["diff", before, after]) == 0
    assert (
        capsys.readouterr().out
        == """\
diff train.py
    peak             100.0 MiB, the same
    reserved         120.0 MiB, the same
    growth per step  0 B, the same

No worse.
"""
    )


def test_what_is_worse_is_told_by_function(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = replace(RUN, peak=150 * MIB, lines=(replace(RUN.lines[0], nbytes=90 * MIB), *RUN.lines[1:]))
    before, after = told(tmp_path, "a.json"), told(tmp_path, "b.json", more, leak(12, 4096))
    assert main(["diff", before, after]) == 1
    shown = capsys.readouterr().out
    assert "peak             100.0 MiB → 150.0 MiB (+50.0 MiB)" in shown
    assert "+50.0 MiB  train.py in fit  60.0 MiB → 110.0 MiB" in shown
    assert "+4.0 KiB  train.py in fit  0 B → 4.0 KiB" in shown
    assert shown.endswith("Worse: peak, growth.\n")
    assert main(["diff", after, before]) == 0
    capsys.readouterr()
    assert main(["diff", "--output-format=json", before, after]) == 1
    values = json.loads(capsys.readouterr().out)
    assert values["worse"] == ["peak", "growth"]
    assert values["at_peak"] == [
        {"path": "train.py", "function": "fit", "before": 60 * MIB, "after": 110 * MIB},
    ]


def test_a_peak_may_rise_by_what_is_allowed(tmp_path: Path) -> None:
    before, after = told(tmp_path, "a.json"), told(tmp_path, "b.json", replace(RUN, peak=104 * MIB))
    assert main(["diff", before, after]) == 1
    assert main(["diff", "--allow=5", before, after]) == 0


def test_running_out_of_memory_is_worse_than_a_higher_peak(tmp_path: Path) -> None:
    failed = replace(RUN, end=End.FAILED, out_of_memory="/project/train.py:12", peak=90 * MIB)
    assert main(["diff", told(tmp_path, "a.json"), told(tmp_path, "b.json", failed)]) == 1


def test_markdown_for_a_pull_request(tmp_path: Path) -> None:
    before, after = told(tmp_path, "a.json"), told(tmp_path, "b.json", replace(RUN, peak=150 * MIB), leak(12, 4096))
    assert main(["diff", "--output-format=markdown", "-o", str(tmp_path / "c.md"), before, after]) == 1
    text = (tmp_path / "c.md").read_text(encoding="utf-8")
    page = markdown_it.MarkdownIt("commonmark").enable("table").render(text)
    assert page.count("<table>") == 2
    assert "<td>peak</td>" in page
    assert "<strong>GPU memory of <code>train.py</code>: worse (peak, growth)</strong>" in page


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "not JSON"),
        ("[1]", "not what trace or verify writes as JSON"),
        ('{"run": {}, "directory": "/"}', "not what trace or verify writes as JSON"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_what_is_no_run_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, complaint: str
) -> None:
    (tmp_path / "a.json").write_text(text)
    assert main(["diff", told(tmp_path, "b.json"), str(tmp_path / "a.json")]) == 2
    assert f"{tmp_path / 'a.json'}: {complaint}" in capsys.readouterr().err
    assert main(["diff", told(tmp_path, "b.json"), str(tmp_path / "absent.json")]) == 2
    assert main(["diff", told(tmp_path, "b.json")]) == 2


def test_a_budget(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    budget = tmp_path / "budget.toml"
    budget.write_text('["train.py"]\npeak = "100 MiB"\ngrowth = "0 B"\n')
    good, bad = told(tmp_path, "a.json"), told(tmp_path, "b.json", replace(RUN, peak=101 * MIB), leak(12, 4096))
    assert main(["diff", "--budget", str(budget), good]) == 0
    assert "train.py  within budget\n    peak             100.0 MiB of 100.0 MiB" in capsys.readouterr().out
    assert main(["diff", "--budget", str(budget), good, bad]) == 1
    assert "train.py  over budget: peak, growth" in capsys.readouterr().out
    assert main(["diff", "--budget", str(budget), "--output-format=json", good, bad]) == 1
    values = json.loads(capsys.readouterr().out)
    assert [one["over"] for one in values["programs"]] == [[], ["peak", "growth"]]
    budget.write_text('["trains.py"]\npeak = "100 MiB"\n')
    assert main(["diff", "--budget", str(budget), good]) == 2
    assert "has no budget for 'train.py' (did you mean 'trains.py'?)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("peak = 1", "'peak' must be a table"),
        ("[a]", "'a' must be a table with peak or growth"),
        ("[a]\npeek = 1", "has no 'peek' (did you mean 'peak'?)"),
        ("[a]\npeak = true", "must be a size"),
        ("[a]\npeak = 1.5", "must be a size"),
        ("[a]\npeak = '4 Gibi'", "not a size"),
        ("[a]\npeak = -1", "cannot be negative"),
        ("[a", "not valid TOML"),
    ],
)
def test_a_budget_that_cannot_be_used(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "budget.toml").write_text(text)
    with pytest.raises(ConfigError) as raised:
        read_budget(tmp_path / "budget.toml")
    assert complaint in str(raised.value)
    assert str(tmp_path / "budget.toml") in str(raised.value)


def test_a_budget_is_read(tmp_path: Path) -> None:
    (tmp_path / "budget.toml").write_text('["a.py --x 1"]\ngrowth = 512\n["b.py"]\npeak = "1.5 GiB"\n')
    assert read_budget(tmp_path / "budget.toml") == {
        "a.py --x 1": Budget(growth=512),
        "b.py": Budget(peak=3 << 29),
    }


def test_the_budgets_of_the_page_are_valid(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/diff.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    for block in blocks:
        (tmp_path / "budget.toml").write_text(block)
        assert read_budget(tmp_path / "budget.toml")
    assert len(blocks) == 2


def test_growth_along_steps_counts(tmp_path: Path) -> None:
    grows = SeriesGrowth("optimizer 1", Growth(4096.0, 1.0, 18), stepping=True)
    after = read_usage(Path(told(tmp_path, "b.json", replace(RUN, growth=(grows,)))))
    before = read_usage(Path(told(tmp_path, "a.json")))
    assert after.steepest == 4096
    assert Changes(before, after, 0.01).reasons == ("growth",)


_FUNCTIONS = st.builds(Function, st.sampled_from(["a.py", "b.py"]), st.sampled_from(["<module>", "fit", "Net.forward"]))
_HELD = st.dictionaries(_FUNCTIONS, st.integers(0, 1 << 40))
_USAGES = st.builds(
    Usage,
    st.just("train.py"),
    st.just("simulated"),
    st.integers(0, 1 << 40),
    st.none() | st.integers(0, 1 << 40),
    st.floats(0, 1e9),
    _HELD,
    _HELD,
    st.booleans(),
)


@given(_USAGES, _USAGES, st.floats(0, 1))
def test_properties_of_changes(one: Usage, other: Usage, allowed: float) -> None:
    assert Changes(one, one, allowed).reasons == ()
    assert Changes(one, one, allowed).at_peak() == []
    there, back = Changes(one, other, allowed), Changes(other, one, allowed)
    assert [(function, now, was) for function, was, now in there.at_peak()] == back.at_peak()
    assert not {"peak", "out of memory"} & set(there.reasons) & set(back.reasons)
    values: dict[str, Any] = json.loads(json.dumps(there.to_json()))
    assert sum(each["after"] - each["before"] for each in values["at_peak"]) == sum(other.at_peak.values()) - sum(
        one.at_peak.values()
    )
