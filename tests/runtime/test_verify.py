"""`torchmemlint verify` as its users call it, with the real rules, on programs that really run."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.runtime.schemas import VERIFY, validate  # noqa: E402
from tests.runtime.test_trace import SCORING  # noqa: E402
from torchmemlint.cli.main import main  # noqa: E402
from torchmemlint.config.resolver import Resolver  # noqa: E402
from torchmemlint.doubts import Confidence, Doubt  # noqa: E402
from torchmemlint.measured import Verdict  # noqa: E402
from torchmemlint.report.verification import write_verification  # noqa: E402
from torchmemlint.runtime.verification import FindingResult, VerifyReport  # noqa: E402
from torchmemlint.runtime.verify import NOT_ENOUGH  # noqa: E402

TRAIN = """
    import sys
    import torch
    from torch import nn
    from evaluation import evaluate

    torch.set_num_threads(1)
    model = nn.Linear(32, 256)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    history = []
    for step in range(1000):
        inputs = torch.randn(16, 32)
        loss = model(inputs).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if len(sys.argv) > 1:
            history.append(loss)
    evaluate(model, [torch.randn(16, 32) for _ in range(20)])
"""
EVALUATION = """
    import torch

    def evaluate(model: torch.nn.Module, batches: list) -> torch.Tensor:
        model.eval()
        total = 0
        for batch in batches:
            total += model(batch).square().mean()
        return total / len(batches)
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "train.py").write_text(dedent(TRAIN))
    (tmp_path / "evaluation.py").write_text(dedent(EVALUATION))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def verify(*arguments: str) -> tuple[int, dict[str, Any]]:
    code = main(["verify", "--backend=cpu", "--isolated", "--output-format=json", "-o", "report.json", *arguments])
    report = json.loads(Path("report.json").read_text(encoding="utf-8"))
    validate(report, VERIFY)
    assert VerifyReport.from_json(report).to_json() == report
    return code, report


def test_findings_are_confirmed_or_not_reached(project: Path) -> None:
    code, report = verify("--select=TML201,TML102", "--unsafe-fixes", "train.py")
    found = {(Path(one["finding"]["filename"]).name, one["finding"]["code"]): one for one in report["findings"]}
    evaluation, history = found["evaluation.py", "TML201"], found["train.py", "TML102"]
    assert (evaluation["verdict"], evaluation["costs"], evaluation["reached"]) == ("confirmed", True, 20)
    # Of each batch the graph keeps the product, 16 x 256 floats, for the square; the batch itself is older.
    before, after = evaluation["comparison"]["before"], evaluation["comparison"]["after"]
    assert before["growth"]["bytes_per_step"] >= 16 * 256 * 4
    assert after["growth"]["bytes_per_step"] == 0.0
    assert before["peak"] - after["peak"] > 18 * 16 * 256 * 4
    assert evaluation["comparison"]["difference"]["sameness"] == "equal"
    assert (history["verdict"], history["reached"], history["comparison"]) == ("not reached by this run", 0, None)
    assert report["before"]["steps"] == 12
    assert code == 1
    text = io.StringIO()
    write_verification(VerifyReport.from_json(report), text, color=False, root=project)
    assert "evaluation.py:8  TML201 eval-without-no-grad  confirmed\n" in text.getvalue()
    assert "\x1b" not in text.getvalue()
    assert "likely" not in text.getvalue()
    assert text.getvalue().endswith("1 confirmed, 1 not reached by this run.\n")
    evaluation["finding"] |= {"confidence": "likely", "doubts": [Doubt.GIVEN.to_json()]}
    validate(report, VERIFY)
    write_verification(VerifyReport.from_json(report), text, color=False, root=project)
    assert re.search(f"likely +{Doubt.GIVEN.value}\n", text.getvalue())
    assert sorted(path.name for path in project.iterdir()) == ["evaluation.py", "report.json", "train.py"]
    assert (project / "evaluation.py").read_text() == dedent(EVALUATION)


@pytest.mark.parametrize(
    ("arguments", "confidence"), [((), Confidence.LIKELY), (("--confidence=certain",), Confidence.CERTAIN)]
)
def test_it_measures_what_check_reports(
    project: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], confidence: Confidence
) -> None:
    asked: list[Confidence] = []

    def asking(program: object, resolver: Resolver, *_: object) -> None:
        asked.append(resolver.settings_for(project).confidence)

    monkeypatch.setattr("torchmemlint.runtime.verify.verify", asking)
    main(["verify", "--isolated", *arguments, "train.py"])
    assert asked == [confidence]


@pytest.mark.slow
def test_runs_side_by_side(project: Path) -> None:
    text = dedent(TRAIN).replace("if len(sys.argv) > 1", "if step >= 0")
    (project / "train.py").write_text(text)
    code, report = verify("--jobs=3", "--select=TML201,TML102", "--unsafe-fixes", "train.py")
    found = {one["finding"]["code"]: one for one in report["findings"]}
    evaluation, history = found["TML201"], found["TML102"]
    assert (code, evaluation["verdict"]) == (1, "confirmed")
    assert history["comparison"]["difference"]["sameness"] == "equal"  # what it costs is on the host's heap alone
    growth = evaluation["comparison"]["before"]["growth"]["bytes_per_step"]
    assert growth >= 16 * 256 * 4
    # Of what shared the machine no time is told; of all fixes, run once more by themselves, it is.
    assert evaluation["comparison"]["after"]["seconds_per_step"] is None
    assert report["together"]["after"]["seconds_per_step"] > 0
    assert report["together_fixes"] == 2
    assert report["notes"] == ["3 runs went side by side (--jobs), so times with a single fix are not told"]
    assert report["before"]["demands"]["writes"] == []


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
def test_the_order_to_end_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "waits.py").write_text("import os, time\nopen('pid', 'w').write(str(os.getpid()))\ntime.sleep(600)\n")
    (tmp_path / "temporary").mkdir()
    command = [sys.executable, "-m", "torchmemlint", "verify", "--isolated", "--backend=cpu", "waits.py"]
    environment = {**os.environ, "TMPDIR": str(tmp_path / "temporary")}
    process = subprocess.Popen(command, cwd=tmp_path, env=environment)
    deadline = time.monotonic() + 120
    while not ((tmp_path / "pid").exists() and (tmp_path / "pid").read_text()) and time.monotonic() < deadline:
        time.sleep(0.1)
    process.terminate()
    assert process.wait(60) == 128 + signal.SIGTERM
    assert not list((tmp_path / "temporary").iterdir())
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_nothing_found_is_exit_code_0(project: Path) -> None:
    code, report = verify("--select=TML401", "-m", "train", "--flag")
    assert (code, report["findings"], report["program"]) == (0, [], "-m train --flag")
    assert report["steady"]["sameness"] == "equal"


def test_a_program_that_fails_is_exit_code_2(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (project / "broken.py").write_text("import torch\nraise KeyError('lost')\n")
    assert main(["verify", "--isolated", "--backend=cpu", "broken.py"]) == 2
    err = capfd.readouterr().err
    assert err.endswith("KeyError: 'lost'\nerror: the program does not run: KeyError: 'lost'\n")
    assert f'File "{project / "broken.py"}", line 2' in err


def test_wrong_calls_are_refused(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "package.train"]) == 2
    assert "package.train: no such file. Did you mean `-m package.train`?" in capfd.readouterr().err
    assert main(["verify", "--backend=rocm", "train.py"]) == 2
    assert "'rocm' is not one of 'auto', 'cuda'" in capfd.readouterr().err


def test_without_torch_it_says_what_to_install(project: Path) -> None:
    script = (
        "import sys, importlib.util\n"
        "real = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name, *rest: None if name == 'torch' else real(name, *rest)\n"
        "from torchmemlint.cli.main import main\n"
        "code = main(['verify', 'train.py'])\n"
        "assert 'torch' not in sys.modules\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "Error: torchmemlint verify needs torch: pip install 'torchmemlint[verify]'\n"


def test_what_is_collected_at_a_finding(tmp_path: Path) -> None:
    from torchmemlint.findings import Evidence, Finding, Position, Severity, Span
    from torchmemlint.runtime.growth import Growth
    from torchmemlint.runtime.leaks import Leak
    from torchmemlint.runtime.ledger import Site
    from torchmemlint.runtime.survivors import Accrual
    from torchmemlint.runtime.verify import _with_leak

    path = tmp_path / "train.py"

    def span(row: int) -> Span:
        return Span(Position(row, 1), Position(row, 9))

    def leak(line: int, nbytes: float, *, gathered: bool) -> Leak:
        growth = Accrual("loader 1", nbytes, 1.0, 9, 1.0, True)
        return Leak(growth, None, ((Site(str(path), line, "f"), nbytes),), (), 0, gathered=gathered)

    place = span(2)
    finding = Finding("TML702", "x", Severity.ERROR, "m", path, place, place, (Evidence("evaluates here", span(4)),))
    result = FindingResult({}, Verdict.NOT_TRIED)
    collected = _with_leak(result, finding, [leak(4, 256.0, gathered=True), leak(5, 999.0, gathered=True)])
    assert (collected.growing, collected.collected) == ((f"line {path}:4", Growth(256.0, 1.0, 9)), True)
    both = _with_leak(result, finding, [leak(4, 256.0, gathered=True), leak(4, 64.0, gathered=False)])
    assert (both.growing, both.collected) == ((f"line {path}:4", Growth(64.0, 1.0, 9)), False)
    assert _with_leak(result, finding, [leak(5, 999.0, gathered=True)]) == result


def test_what_grows_at_a_finding(tmp_path: Path) -> None:
    from torchmemlint.findings import Evidence, Finding, Position, Severity, Span
    from torchmemlint.runtime.growth import Growth
    from torchmemlint.runtime.results import End, LineGrowth, LoopResult, RunResult, SeriesGrowth
    from torchmemlint.runtime.verify import _growing

    path = tmp_path / "train.py"

    def span(row: int) -> Span:
        return Span(Position(row, 1), Position(row, 9))

    finding = Finding("TML102", "x", Severity.ERROR, "m", path, span(12), span(12), (Evidence("made here", span(4)),))
    loops = tuple(LoopResult(str(path), line, 20, 1, 9, 0, True) for line in (9, 11))
    run = RunResult(End.FINISHED, loops=loops)
    assert _growing(finding, run) is None
    outer, inner = (SeriesGrowth(f"loop {path}:{line}", Growth(64.0 * line, 1.0, 9)) for line in (9, 11))
    with_outer = RunResult(End.FINISHED, loops=loops, growth=(outer,))
    assert _growing(finding, with_outer) == (f"loop {path}:9", outer.growth)
    with_both = RunResult(End.FINISHED, loops=loops, growth=(outer, inner))
    assert _growing(finding, with_both) == (f"loop {path}:11", inner.growth)
    line = LineGrowth(str(path), 4, "f", "optimizer 1", Growth(10_000.0, 1.0, 9))
    by_line = RunResult(End.FINISHED, loops=loops, growth=(inner,), growing_lines=(line,))
    assert _growing(finding, by_line) == (f"line {path}:4", line.growth)


@pytest.mark.slow
def test_a_fix_that_is_not_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "score.py").write_text(SCORING.format(megabytes=40))
    monkeypatch.chdir(tmp_path)
    command = ["verify", "--isolated", "--fake", "--unsafe-fixes", "--output-format=json", "score.py"]
    assert main(command) == 1
    report = json.loads(capsys.readouterr().out)
    validate(report, VERIFY)
    assert report["before"]["out_of_memory"] == f"{tmp_path / 'score.py'}:12"
    (found,) = report["findings"]
    assert (found["note"], found["verdict"], found["costs"]) == (NOT_ENOUGH, "no effect here", False)
