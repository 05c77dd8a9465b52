"""Ticks, probes and overlays: what the instrumented program does, and that it is otherwise the same program."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from torchmemlint.runtime.instrument import Instrumented
from torchmemlint.runtime.loops import Entry, LoopWatch, StopRun
from torchmemlint.runtime.order import ProjectFiles


def watch(steps: int = 3, seconds: float = 60) -> LoopWatch:
    return LoopWatch(steps, seconds, lambda: 0)


def run(text: str, loops: LoopWatch, **names: Any) -> tuple[dict[str, Any], Instrumented]:
    rows = names.pop("rows", ())
    instrumented = Instrumented(ProjectFiles(()), loops, probes={"/program.py": rows})
    names["step"] = lambda series="optimizer 1": loops.step(series)
    with instrumented:
        exec(instrumented.code("/program.py", dedent(text).encode()), names)
    return names, instrumented


def test_a_loop_without_steps_is_never_cut() -> None:
    loops = watch(steps=1)
    names, _ = run("total = 0\nfor i in range(1000):\n    total += i\nelse:\n    total = -total", loops)
    assert names["total"] == -sum(range(1000))
    assert [(loop.line, loop.turns, loop.cuts) for loop in loops.loops.values()] == [(2, 1000, 0)]


def test_a_loop_is_left_after_its_steps_and_two_turns() -> None:
    loops = watch(steps=3)
    names, _ = run(
        """
        log = []
        for epoch in range(100):
            for i in range(100):
                step()
            log.append((epoch, i))
        while True:
            step()
        """,
        loops,
    )
    assert names["log"] == [(0, 3), (1, 3)]  # each pass was left at the head of its fourth turn
    assert [(loop.line, loop.turns, loop.cuts) for loop in loops.loops.values()] == [(3, 2, 1), (4, 6, 2), (7, 3, 1)]


def test_accumulated_steps_count_as_the_optimizers() -> None:
    loops = watch(steps=3)
    text = "n = 0\nfor i in range(100):\n    for j in range(4):\n        step('loader 2')\n    step()\n    n += 1\n"
    assert run(text, loops)[0]["n"] == 3


def test_a_loader_pass_ends() -> None:
    loops = watch(steps=3)
    assert not loops.enough_batches(2, 0, 0)
    assert loops.enough_batches(3, 0, 0)  # an evaluation
    assert loops.enough_batches(3, 3, 3)
    assert not loops.enough_batches(3, 1, 3)  # accumulating
    assert loops.enough_batches(12, 2, 12)  # for too long
    assert loops.cut_passes == 3


def test_the_whole_run_is_stopped() -> None:
    loops = watch(steps=3)
    with pytest.raises(StopRun):
        run("def once():\n    step()\ndef twice():\n    once(); once()\n" + "twice()\n" * 40, loops)
    assert loops.counts["optimizer 1"] == 30
    assert loops.stopped == "30 steps of optimizer 1"


def test_time_stops_a_loop_without_steps() -> None:
    loops = watch(seconds=0.0)
    with pytest.raises(StopRun):
        run("while True: pass", loops)
    assert loops.stopped == "time"


def test_a_program_that_swallows_everything_is_left() -> None:
    left: list[str] = []
    loops = watch(seconds=0.0)
    loops.when_swallowed = lambda: left.append("here")
    run("try:\n    for i in range(3): pass\nexcept: pass\n" * 9, loops)
    assert left == ["here"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return [i for i in range(3)]", [0, 1, 2]),
        ("for i in range(9):\n        if i == 4: return i", 4),
        ("for i in range(9):\n        if i < 7: continue\n        break\n    return i", 7),
        ("n = 3\n    while n:\n        n -= 1\n    else:\n        n = 'else'\n    return n", "else"),
        ("for i in ():\n        pass\n    else:\n        return 'empty'", "empty"),
        ("try:\n        for i in range(3): 1 / (i - 1)\n    except ZeroDivisionError:\n        return i", 1),
        ("return list((i for j in range(2) for i in range(2)))", [0, 1, 0, 1]),
    ],
)
def test_the_program_does_what_it_did(body: str, expected: object) -> None:
    loops = watch()
    assert run(f"def f():\n    {body}\nresult = f()", loops)[0]["result"] == expected
    assert loops.active == []


def test_generators_may_end_out_of_order() -> None:
    loops = watch()
    text = """
        def numbers():
            for i in range(3):
                yield i
        first, second = numbers(), numbers()
        next(first); next(second)
        first.close()
        between = len(watched.active)
        second.close()
        """
    assert run(text, loops, watched=loops)[0]["between"] == 1
    assert loops.active == []


def test_tracebacks_name_the_lines_of_the_file() -> None:
    with pytest.raises(KeyError) as raised:
        run("\nfor i in range(2):\n\n    while True:\n        raise KeyError(i)", watch())
    assert raised.traceback[-1].lineno == 5 - 1  # pytest counts from 0


def test_observers_see_turns_and_leaving() -> None:
    loops = watch()
    seen: list[str] = []
    loops.on_turn.append(lambda entry: seen.append(f"turn {entry.loop.line}"))
    loops.on_leave.append(lambda entry: seen.append(f"leave {entry.loop.line} after {entry.turns}"))
    run("for i in range(2):\n    pass\n", loops)
    assert seen == ["turn 1", "turn 1", "leave 1 after 2"]
    longest = next(iter(loops.loops.values())).longest
    assert isinstance(longest, Entry)
    assert longest.around is None


def test_loops_within_a_step_are_told_from_those_between_steps() -> None:
    loops = watch(steps=6)
    text = """
        for layer in range(2): pass
        for epoch in range(9):
            for batch in range(99):
                for time in range(4): pass
                step()
            for test in range(3):
                for layer in range(2): pass
        """
    run(text, loops)
    within = {loop.line: loop.longest.within_a_step for loop in loops.loops.values() if loop.longest is not None}
    assert within == {2: False, 3: False, 4: False, 5: True, 7: False, 8: False}


def test_probes_count_how_often_a_line_is_reached() -> None:
    text = """\
        def f(x):
            '''Says what it is.'''
            if x:
                y = (x +
                     1)
            elif x == 0:
                y = 0
            return y
        for i in range(5):
            f(i)
        def never(): return 1
        """
    names, instrumented = run(text, watch(), rows=(1, 5, 7, 8, 11))
    assert instrumented.reached == {("/program.py", row): count for row, count in ((1, 5), (5, 4), (7, 1), (8, 5))}
    assert names["f"].__doc__ == "Says what it is."


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "measured_package"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "part.py").write_text("def f():\n    for i in range(3):\n        pass\n    return 'own'\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield folder
    for name in [name for name in sys.modules if name.startswith("measured_package")]:
        del sys.modules[name]


def test_imported_modules_are_instrumented_and_overlaid(package: Path) -> None:
    loops = watch()
    part = package / "part.py"
    overlay = {str(part): part.read_text().replace("own", "other").replace("    for", "\n    for")}
    with Instrumented(ProjectFiles((str(package.parent),)), loops, overlay) as instrumented:
        module = importlib.import_module("measured_package.part")
        assert module.f() == "other"
        assert "'other'" in inspect.getsource(module.f)
    assert module.__file__ == str(part)
    assert [loop.line for loop in loops.loops.values()] == [3]
    assert set(instrumented.read) == {str(package / "__init__.py"), str(part)}
    assert not (package / "__pycache__").exists()
    assert part.read_text().endswith("'own'\n")


def test_libraries_are_left_alone(package: Path) -> None:
    files = ProjectFiles((str(package.parent), str(Path(pytest.__file__).parents[1])))
    assert str(package / "part.py") in files
    assert pytest.__file__ not in files
    assert inspect.__file__ not in files
    assert None not in files
