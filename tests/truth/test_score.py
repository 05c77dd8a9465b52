"""Scores: what is counted of a checker's reports."""

from __future__ import annotations

import pytest

from tests.truth.build import Program
from tests.truth.examples import Example, Label
from tests.truth.score import as_json, as_text, by_function, in_process, scored, verdict_on

LEAK = """import torch
import torch.nn.functional as F


def run(model, opt, loader):
    total = 0.0
    for x, y in loader:
        loss = F.mse_loss(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss
    print(total)
"""


def example(name: str, truth: str, text: str = LEAK, pair: int = 0, unseen: bool = False) -> Example:
    label = Label(truth, unseen, truth == "leak", truth == "leak", 0.0, 0.0, 12, 12, 12, ())
    marks = {"put": [("main.py", 12)], "pass": [("main.py", 8)]}
    program = Program({"source": "a", "loop": "for"}, "leak", "s", {"main.py": text}, marks)
    return Example(name, program, label, pair)


PAIR = [example("a", "leak"), example("b", "clean", LEAK.replace("total += loss", "total += loss.item()"))]


def test_the_linter_is_asked_about_all_programs_at_once() -> None:
    reports = in_process(PAIR)
    assert [(file, line, code) for file, line, code, _ in reports["a"]] == [("main.py", 12, "TML101")]
    assert "b" not in reports
    score = scored(PAIR, reports)
    assert (score.told_apart, score.pairs, score.both_reported, score.neither_reported) == (1, 1, 0, 0)
    assert (score.groups["leak"].reported, score.groups["leak"].placed, score.groups["clean"].reported) == (1, 1, 0)


def test_a_function_is_asked_about_each_program() -> None:
    asked = []

    def shouting(files: dict[str, str]) -> list[tuple[str, int, str, str]]:
        asked.append(sorted(files))
        return [("main.py", 1, "TML101", "error")]

    score = scored(PAIR, by_function(shouting, PAIR))
    assert asked == [["main.py"], ["main.py"]]
    assert (score.told_apart, score.both_reported) == (0, 1)
    assert (score.groups["leak"].reported, score.groups["leak"].placed, score.groups["clean"].reported) == (1, 0, 1)


def test_a_function_that_fails_is_silent_there() -> None:
    def failing(files: dict[str, str]) -> list[tuple[str, int, str, str]]:
        raise KeyError("x")

    failed: dict[str, str] = {}
    assert by_function(failing, PAIR, failed) == {}
    assert failed == {"a": "KeyError: 'x'", "b": "KeyError: 'x'"}
    with pytest.raises(KeyError):
        by_function(failing, PAIR)


def test_a_silent_function_tells_nothing_apart() -> None:
    score = scored(PAIR, by_function(lambda files: [], PAIR))
    assert (score.told_apart, score.neither_reported, score.groups["leak"].reported) == (0, 1, 0)


def test_what_counts_as_a_report() -> None:
    leak, deferred = PAIR[0], example("c", "deferred")
    assert not verdict_on(leak, [("main.py", 12, "TML301", "error")]).reported
    assert not verdict_on(leak, [("main.py", 12, "TML202", "error")]).reported
    assert not verdict_on(leak, [("main.py", 12, "TML101", "advice")]).reported
    assert verdict_on(leak, [("main.py", 12, "TML101", "advice")], quiet=()).reported
    assert verdict_on(leak, [("main.py", 8, "TML201", "error")]).placed
    assert not verdict_on(deferred, [("main.py", 12, "TML108", "warning")]).reported
    assert verdict_on(deferred, [("main.py", 12, "TML101", "warning")]).reported


def test_programs_with_an_unseen_caller_stand_apart() -> None:
    score = scored([example("a", "leak", unseen=True)], {"a": [("main.py", 12, "TML101", "error")]})
    assert score.groups["leak"].total == 0
    assert score.groups["unseen caller, harmful"].reported == 1
    assert score.rows == {}


def test_the_worst_value_comes_first() -> None:
    others = [example("c", "leak", pair=1), example("d", "clean", pair=1)]
    for each in others:
        each.program.values["loop"] = "while"
    score = scored([*PAIR, *others], {"a": [("main.py", 12, "TML101", "error")]})
    assert [(row.value, row.found, row.harmful) for row in score.rows["loop"]] == [("while", 0, 1), ("for", 1, 1)]
    text = as_text(score, minimum=1)
    assert text.index("while") < text.index("for", text.index("loop"))
    assert as_json(score)["dimensions"]["loop"] == {"while": [0, 1, 0, 1], "for": [1, 1, 0, 1]}
