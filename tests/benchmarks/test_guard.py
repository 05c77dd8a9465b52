from __future__ import annotations

import json
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


@pytest.fixture
def guard(monkeypatch):
    if find_spec("torch") is None:  # only its files are wanted: importing it takes seconds
        pytest.skip("no torch")
    monkeypatch.syspath_prepend(str(FOLDER))
    import guard

    return guard


@pytest.fixture
def run(guard, monkeypatch, tmp_path, capsys):
    """The script with given costs in place of measured ones: exit status, standard output, standard error."""
    monkeypatch.setattr(guard, "measure", lambda *words: None)

    def run(costs: dict[str, float] | list[dict[str, float]], *words: str):
        rounds = iter(costs if isinstance(costs, list) else [costs, costs])
        monkeypatch.setattr(guard, "by_time", lambda commands, times: dict(next(rounds)))
        monkeypatch.setattr(sys, "argv", ["guard.py", "--history", str(tmp_path / "history.json"), *words])
        status = guard.main()
        return status, *capsys.readouterr()

    return run


def costs(cold: float, warm: float = 0.5) -> dict[str, float]:
    return {"ast.parse": 0.5, "cold": cold, "warm": warm}


def test_without_a_record_there_is_nothing_to_fail(run) -> None:
    status, out, err = run(costs(2.0))
    assert (status, err) == (0, "")
    assert "cold            4.000           -" in out
    assert "nothing of this kind is on record" in out


@pytest.mark.parametrize(("cold", "expected"), [(2.0, 0), (2.28, 0), (2.32, 1), (1.0, 0)])
def test_more_than_15_percent_above_the_record_fails(run, cold: float, expected: int) -> None:
    assert run(costs(2.0), "--record")[0] == 0
    status, out, err = run(costs(cold))
    assert status == expected
    assert ("slower than on record: cold" in err) == bool(expected)
    assert f"{cold / 0.5:>9.3f}{4:>12.3f}{cold / 2 - 1:>+9.1%}" in out


def test_one_busy_moment_does_not_fail(run) -> None:
    run(costs(2.0), "--record")
    assert run([costs(3.0), costs(2.1)])[0] == 0
    assert run([costs(3.0), costs(2.9)])[0] == 1


def test_many_small_losses_fail(run) -> None:
    for cold in (2.0, 2.2):
        assert run(costs(cold), "--record")[0] == 0
    assert run(costs(2.4))[0] == 1


def test_a_slower_run_is_recorded_only_with_a_reason(run, tmp_path) -> None:
    run(costs(2.0), "--record")
    status, _, err = run(costs(3.0), "--record")
    assert status == 1
    assert "not recorded: cold" in err
    assert len(json.loads((tmp_path / "history.json").read_text())) == 1
    assert run(costs(3.0), "--record", "--because", "it follows wrappers")[0] == 0
    assert run(costs(3.1))[0] == 0
    assert run(costs(4.0))[0] == 1


def test_runs_of_other_kinds_are_not_compared(run, guard, tmp_path) -> None:
    run(costs(1.0), "--record")
    file = tmp_path / "history.json"
    for part, other in (("by", "instructions"), ("python", "3.0"), ("torch", "1.0"), ("processor", "another")):
        record = json.loads(file.read_text())
        record[0]["kind"][part] = other
        other_file = tmp_path / f"{part}.json"
        other_file.write_text(json.dumps(record))
        status, out, _ = run(costs(9.0), "--history", str(other_file))
        assert status == 0
        assert "nothing of this kind is on record" in out


@pytest.mark.parametrize("words", [["--because", "x"], ["--rounds", "0"]])
def test_options_that_mean_nothing_are_refused(run, words: list[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        run(costs(1.0), *words)
    assert refused.value.code == 2


def test_the_corpus_is_the_same_each_time_and_holds_what_it_says(guard, tmp_path) -> None:
    states = []
    for name in ("one", "two"):
        root = tmp_path / name
        root.mkdir()
        files = guard.corpus(root)
        states.append({str(file.relative_to(root)): file.read_bytes() for file in files})
    assert states[0] == states[1]
    assert {"train.py", "layers/linear.py"} <= states[0].keys()
    assert len(states[0]) > 60


def test_costs_are_the_least_of_all_rounds(guard, monkeypatch) -> None:
    from measure import Measurement

    seconds = iter([3.0, 30.0, 1.0, 20.0, 2.0, 10.0])
    monkeypatch.setattr(guard, "measure", lambda *words: Measurement(0, next(seconds), 0, 0))
    assert guard.by_time({"a": ["a"], "b": ["b"]}, 3) == {"a": 1.0, "b": 10.0}


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="no valgrind")
def test_counted_instructions_grow_with_the_work_and_stay_the_same(guard) -> None:
    def loop(times: int) -> list[str]:
        return ["/bin/sh", "-c", f"i=0; while [ $i -lt {times} ]; do i=$((i+1)); done"]

    one = guard.by_instructions({"short": loop(10), "long": loop(20_000)})
    assert one["long"] > one["short"] * 2
    assert abs(one["long"] / guard.by_instructions({"long": loop(20_000)})["long"] - 1) < 0.001


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="no valgrind")
def test_a_command_that_fails_is_an_error(guard) -> None:
    with pytest.raises(RuntimeError, match="valgrind gave 3 on fails"):
        guard.by_instructions({"fails": ["/bin/sh", "-c", "exit 3"]})
