"""`torchmemlint verify --record`: which figures are kept, and that `check` shows them."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torchmemlint.cli.main import main  # noqa: E402
from torchmemlint.measured import (  # noqa: E402
    Measured,
    Measurements,
    MeasurementsError,
    Verdict,
    read_measurements,
)
from torchmemlint.runtime.growth import NO_GROWTH, Growth  # noqa: E402
from torchmemlint.runtime.recording import check, measured, record  # noqa: E402
from torchmemlint.runtime.results import End, RunResult  # noqa: E402
from torchmemlint.runtime.verification import (  # noqa: E402
    Comparison,
    Difference,
    Figures,
    FindingResult,
    Sameness,
    VerifyReport,
)

MIB = 1 << 20
RUN = RunResult(End.FINISHED, backend="simulated", card="A100 40GB", torch="2.13.0")
EQUAL = Difference(Sameness.EQUAL)
ABOUT = ("simulated", "A100 40GB", "2.13.0", "2026-11-21", "train.py")


def comparison(before: Figures, after: Figures) -> Comparison:
    return Comparison(before, after, "", EQUAL)


def figures(peak: int, per_step: float, **more: Any) -> Figures:
    grows = Growth(per_step, 1.0, 10) if per_step else NO_GROWTH
    return Figures(peak, more.pop("reserved", 20 * MIB), grows, None, True, **more)


def result(path: Path, verdict: Verdict, fingerprint: str = "f1", **more: Any) -> FindingResult:
    finding = {"fingerprint": fingerprint, "code": "TML101", "filename": str(path)}
    return FindingResult(finding, verdict, **more)


def report(*results: FindingResult) -> VerifyReport:
    return VerifyReport("train.py", "/", 12, RUN, results, EQUAL)


def told(verdict: Verdict, **more: Any) -> Measured | None:
    one = result(Path("train.py"), verdict, **more)
    return measured(one, report(one), "2026-11-21")


def test_figures_are_what_falls_and_0_for_what_does_not() -> None:
    grown = comparison(figures(9 * MIB, 1024.26), figures(8 * MIB, 0.0))
    assert told(Verdict.CONFIRMED, comparison=grown) == Measured(Verdict.CONFIRMED, *ABOUT, 1024.3, MIB, 0)
    same = comparison(figures(9 * MIB, 0.0), figures(9 * MIB - 511, 0.0))
    assert told(Verdict.NO_EFFECT, comparison=same) == Measured(Verdict.NO_EFFECT, *ABOUT, 0, 0, 0)
    reserved = comparison(figures(MIB, 0.0, reserved=8 * MIB), figures(MIB, 0.0, reserved=6 * MIB))
    assert told(Verdict.CONFIRMED, comparison=reserved) == Measured(Verdict.CONFIRMED, *ABOUT, 0, 0, 2 * MIB)
    heaps = Growth(20480.0, 1.0, 10), NO_GROWTH
    before, after = (figures(MIB, 0.0, reserved=None, host_growth=heap) for heap in heaps)
    on_host = told(Verdict.CONFIRMED, comparison=comparison(before, after))
    assert on_host == Measured(Verdict.CONFIRMED, *ABOUT, 0, 0, None, 20480.0)


def test_without_a_fix_it_is_what_is_kept() -> None:
    for family in ("line", "loop"):
        growing = f"{family} train.py:3", Growth(2048.0, 1.0, 10)
        expected = Measured(Verdict.NOT_TRIED, *ABOUT, **{f"{family}_per_step": 2048.0})  # type: ignore[arg-type]
        assert told(Verdict.NOT_TRIED, growing=growing) == expected


def test_what_tells_nothing_is_not_kept() -> None:
    assert told(Verdict.NOT_REACHED, growing=("loop train.py:3", Growth(2048.0, 1.0, 10))) is None
    assert told(Verdict.NOT_TRIED) is None
    assert told(Verdict.FIX_FAILS) == Measured(Verdict.FIX_FAILS, *ABOUT)


def test_a_run_replaces_what_it_measured_and_leaves_the_rest(tmp_path: Path) -> None:
    path, source = tmp_path / "kept.json", tmp_path / "train.py"
    old = Measured(Verdict.CONFIRMED, "cpu", "", "2.2.0", "2025-01-01", "old.py", 5.0, 0)
    kept = Measurements(tmp_path)
    for name in ("f1", "f2", "f3"):
        kept = kept.with_figures(name, "TML101", source, old)
    path.write_text(kept.to_text())
    grown = comparison(figures(9 * MIB, 1024.0), figures(8 * MIB, 0.0))
    run = report(result(source, Verdict.CONFIRMED, "f1", comparison=grown), result(source, Verdict.NOT_REACHED, "f2"))
    assert record(run, lambda _: path, "2026-11-21") == {path: 1}
    after = read_measurements(path)
    assert after is not None
    assert after.of("f1", source) == Measured(Verdict.CONFIRMED, *ABOUT, 1024.0, MIB, 0)
    assert (after.of("f2", source), after.of("f3", source)) == (old, old)


def test_each_project_s_figures_go_into_its_own_file(tmp_path: Path) -> None:
    sources = [tmp_path / folder / "train.py" for folder in ("one", "two")]
    for source in sources:
        source.parent.mkdir()
    run = report(*(result(source, Verdict.FIX_FAILS) for source in sources))
    counts = record(run, lambda filename: filename.parent / "kept.json", "2026-11-21")
    assert counts == {source.parent / "kept.json": 1 for source in sources}
    for source in sources:
        there = read_measurements(source.parent / "kept.json")
        assert there is not None
        assert there.of("f1", source) is not None


def test_a_file_that_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "package.json"
    path.write_text('{"name": "a-package"}')
    fails = report(result(path, Verdict.FIX_FAILS))
    with pytest.raises(MeasurementsError, match="not a file of measurements"):
        check(path)
    with pytest.raises(MeasurementsError, match="not a file of measurements"):
        record(fails, lambda _: path, "2026-11-21")
    assert path.read_text() == '{"name": "a-package"}'
    with pytest.raises(MeasurementsError, match="no such folder"):
        check(tmp_path / "gone" / "kept.json")
    with pytest.raises(MeasurementsError, match="cannot be written: No such file"):
        record(fails, lambda _: tmp_path / "gone" / "kept.json", "2026-11-21")


def test_wrong_calls_are_refused_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("raise SystemExit('it ran')\n")
    Path("package.json").write_text("{}")
    assert main(["verify", "--isolated", "--record-file=package.json", "train.py"]) == 2
    assert capfd.readouterr().err.startswith("error: package.json: not a file of measurements")
    assert main(["verify", "--record", "--all-rules"]) == 2
    assert "--record keeps figures of a script's findings" in capfd.readouterr().err


PROGRAM = """
    import torch
    from torch import nn

    torch.set_num_threads(1)


    def evaluate(model: nn.Module, batches: list) -> torch.Tensor:
        model.eval()
        total = 0
        for batch in batches:
            total += model(batch).square().mean()
        return total / len(batches)


    evaluate(nn.Linear(32, 256), [torch.randn(16, 32) for _ in range(20)])
"""


def test_verify_records_and_check_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    source, path = Path("train.py"), Path("torchmemlint-measured.json")
    source.write_text(dedent(PROGRAM))
    options = ("--isolated", "--select=TML201")
    assert main(["verify", "--backend=cpu", "--record", "-o", "report.txt", *options, "train.py"]) == 1
    assert capfd.readouterr().err == "notice: recorded 1 finding in torchmemlint-measured.json\n"
    (line,) = json.loads(path.read_text())["measurements"]
    assert (line["code"], line["file"]) == ("TML201", "train.py")
    told = line["measured"]
    # Of each batch the graph keeps the product, 16 x 256 floats, for the square.
    assert (told["verdict"], told["per_step"]) == ("confirmed", 16 * 256 * 4)
    assert told["peak"] > 18 * 16 * 256 * 4
    assert (told["backend"], told["card"], told["torch"]) == ("cpu", "", torch.__version__)
    assert (told["program"], told["reserved"], told["line_per_step"]) == ("train.py", None, None)

    def shown(output_format: str) -> str:
        assert main(["check", *options, f"--output-format={output_format}", "train.py"]) == 1
        return capfd.readouterr().out

    sentence = f"+16.0 KiB per step (cpu, {told['date']})"
    for text in (dedent(PROGRAM), '"""A page\nof words."""\n' + dedent(PROGRAM)):  # as measured; lines moved
        source.write_text(text)
        assert f"= measured: {sentence}\n" in shown("full")
        assert shown("concise").splitlines()[0].endswith(" (measured: +16.0 KiB per step)")
        assert json.loads(shown("json"))[0]["measured"] == told
    source.write_text(dedent(PROGRAM).replace("square()", "abs()"))  # another statement: nobody measured it
    assert "= measured" not in shown("full")
    assert "(measured" not in shown("concise")
    assert "measured" not in json.loads(shown("json"))[0]


def test_the_card_of_a_simulation_is_named() -> None:
    from torchmemlint.runtime.backends import Cpu
    from torchmemlint.runtime.simulated import cards
    from torchmemlint.runtime.simulated.backend import Simulated

    assert (Simulated("T4").card_name, Simulated().card_name, Cpu().card_name) == ("T4", "A100 40GB", "")
    assert cards.title(cards.card("h200")) == "an H200"
