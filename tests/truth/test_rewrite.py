"""Rewritings: each changes what it should, keeps what the program does, and takes tracked lines along."""

from __future__ import annotations

import ast
import contextlib
import io
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.truth.fixtures import bad_fixtures, respelt
from tests.truth.rewrite import REWRITINGS, depends_on_comments, expectations, rewritten
from tests.truth.spellings import differences

BAD = bad_fixtures()

PROGRAM = textwrap.dedent('''
    """A program without torch."""
    from dataclasses import dataclass

    @dataclass
    class Box:
        value: int

    class Meter:
        """Adds up."""

        def __init__(self, start):
            self.total = start

        def take(self, value, times):
            """Add it."""
            self.total += value * times

        def read(self):
            return self.total

    def double(number, offset):
        twice = number * 2
        return twice + offset

    def run(numbers):
        meter = Meter(start=0)
        kept = []
        total = 0
        for number in numbers:
            doubled = double(number, 1)
            label = str(doubled)
            kept.append(Box(doubled))
            total = total + doubled
            meter.take(doubled, times=2)
        squares = [number * number for number in numbers]
        pairs = [a + b for a, b in zip(numbers, numbers)]
        print(total, meter.read(), squares, pairs, label, [box.value for box in kept])

    if __name__ == "__main__":
        run([1, 2, 3])
''').lstrip()


@contextlib.contextmanager
def importable(files: dict[str, str], folder: Path) -> Iterator[None]:
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop("moved", None)


def output(files: dict[str, str], folder: Path) -> str:
    with importable(files, folder), contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(files["main.py"], "main.py", "exec", dont_inherit=True), {"__name__": "__main__"})
    return out.getvalue()


def line_of(text: str, part: str) -> int:
    return next(i for i, line in enumerate(text.split("\n"), 1) if part in line)


EXPECTED = {  # what is there afterwards, and what is there no more
    "same": (["total = total + doubled"], ["total = total + doubled\n\n"]),
    "rename": (["def run(", "self.total"], ["numbers", "kept", "label"]),
    "temporary": (["held = doubled", "total = total + held", "kept.append(held)"], ["kept.append(Box(doubled))"]),
    "alias_of_self": (["me = self", "me.total += value * times", "self.total = start"], ["return self.total"]),
    "for_to_while": (["while True:", "number = next(steps0)"], ["for number in numbers:"]),
    "plus_equals": (["total += doubled", "self.total = self.total + value * times"], ["total = total + doubled"]),
    "list_to_map": (["list(map(lambda item", "for number in map("], ["[number * number"]),
    "unused_function": (["def not_called("], []),
    "extract_function": (["def extracted(", "= extracted("], []),
    "inline_function": (["in_twice = in_number * 2"], ["def double(", "double(number, 1)"]),
    "class_to_other_file": (["from moved import Box, Meter"], ["class Meter"]),
    "keyword_arguments": (["double(number=number, offset=1)", "meter.take(value=doubled, times=2)"], []),
    "positional_arguments": (["Meter(0)", "meter.take(doubled, 2)"], ["start=0"]),
}


def test_every_rewriting_is_tested() -> None:
    assert EXPECTED.keys() == REWRITINGS.keys()


@pytest.mark.parametrize("name", REWRITINGS)
def test_a_rewriting_changes_what_it_should_and_keeps_what_the_program_does(name: str, tmp_path: Path) -> None:
    new = rewritten(name, {"main.py": PROGRAM})
    assert new is not None
    for part in EXPECTED[name][0]:
        assert part in new.files["main.py"]
    for part in EXPECTED[name][1]:
        assert part not in new.files["main.py"]
    assert (
        output(new.files, tmp_path)
        == output({"main.py": PROGRAM}, tmp_path)
        == ("15 30 [1, 4, 9] [2, 4, 6] 7 [3, 5, 7]\n")
    )


@pytest.mark.parametrize("name", REWRITINGS)
def test_a_rewriting_without_anything_to_change(name: str) -> None:
    new = rewritten(name, {"main.py": "import os\nprint(os.sep)\n"})
    assert (new is not None) == (name in ("same", "unused_function"))


@pytest.mark.parametrize("name", REWRITINGS)
def test_tracked_lines_move_along(name: str) -> None:
    words = {"kept.append": "append(", "self.total += ": ".total", "twice = ": "twice", "= double(number": "doubled"}
    marks = {("main.py", line_of(PROGRAM, part)): word for part, word in words.items()}
    new = rewritten(name, {"main.py": PROGRAM}, marks)
    assert new is not None
    for mark, word in marks.items():
        texts = [new.files[file].split("\n")[line - 1] for file, line in new.places[mark]]
        # renamed names are other words
        assert any(word in text for text in texts) or name == "rename", (mark, texts)


def test_a_statement_that_becomes_two_stands_on_both_lines() -> None:
    mark = ("main.py", line_of(PROGRAM, "kept.append"))
    new = rewritten("temporary", {"main.py": PROGRAM}, [mark])
    assert new is not None
    texts = [new.files[file].split("\n")[line - 1].strip() for file, line in new.places[mark]]
    assert texts == ["held = Box(doubled)", "kept.append(held)"]


def test_statements_that_share_a_line() -> None:
    new = rewritten("same", {"main.py": "if x:\n    first = 1; second = 2\n"}, [("main.py", 2)])
    assert new is not None
    assert new.files == {"main.py": "if x:\n    first = 1\n    second = 2\n"}
    assert new.places[("main.py", 2)] == (("main.py", 2), ("main.py", 3))


def test_an_extracted_function_gives_back_what_the_next_iteration_takes() -> None:
    text = "def run(state, xs):\n    for x in xs:\n        out, state = max(state, x), x\n        print(out)\n"
    new = rewritten("extract_function", {"main.py": text}, [("main.py", 3)])
    assert new is not None
    lines = new.files["main.py"].splitlines()
    places = [lines[line - 1].strip() for _, line in new.places[("main.py", 3)]]
    assert places == ["out, state = (max(state, x), x)", "out, state = extracted(state, x)"]


def test_a_function_is_inlined_wherever_it_is_called_or_nowhere() -> None:
    text = "def double(x):\n    return 2 * x\n\na = double(1)\nb = double(2)\n"
    new = rewritten("inline_function", {"main.py": text})
    assert new is not None
    assert new.files == {"main.py": "in_x = 1\na = 2 * in_x\nin_x = 2\nb = 2 * in_x\n"}
    assert rewritten("inline_function", {"main.py": text + "print(double(3))\n"}) is None


def test_a_class_takes_its_lines_to_the_other_file() -> None:
    mark = ("main.py", line_of(PROGRAM, "self.total += "))
    new = rewritten("class_to_other_file", {"main.py": PROGRAM}, [mark])
    assert new is not None
    [(file, line)] = new.places[mark]
    assert file == "moved.py"
    assert new.files[file].split("\n")[line - 1].strip() == "self.total += value * times"


def test_a_decorator_is_part_of_its_function() -> None:
    text = "import functools\n\n\n@functools.cache\ndef one(x):\n    y = x\n    return y\n"
    new = rewritten("rename", {"main.py": text}, [("main.py", 4)])
    assert new is not None
    assert set(new.places[("main.py", 4)]) == {("main.py", 3), ("main.py", 4)}


@pytest.mark.parametrize("path", BAD[::3], ids=lambda path: f"{path.parent.name[:6]}-{path.stem}")
def test_fixtures_can_be_rewritten(path: Path) -> None:
    found = list(respelt(path))
    assert found or depends_on_comments(path.read_text(encoding="utf-8"))
    for one in found:
        assert one.expected
        assert len({len(other.expected) for other in found}) == 1
        for file in one.files.values():
            ast.parse(file)
        for expected in one.expected:
            assert expected.code.startswith("TML")
            for file, line in expected.places:
                assert one.files[file].split("\n")[line - 1].strip()


@pytest.mark.slow
def test_another_spelling_changes_no_finding() -> None:
    spellings, changed = differences(BAD[::10])
    assert spellings > 100
    assert [str(one) for one in changed] == []


def test_each_rewriting_applies_to_fixtures() -> None:
    texts = [{path.name: path.read_text(encoding="utf-8")} for path in BAD]
    for name in REWRITINGS:
        assert any(rewritten(name, files) is not None for files in texts), name


def test_what_is_expected_of_a_fixture_moves_along(tmp_path: Path) -> None:
    path = tmp_path / "bad_sum.py"
    path.write_text("total = 0\n\nfor x in []:\n    total += x  # expect: TML101 warning, TML201\n")
    [one] = [one for one in respelt(path) if one.rewriting == "temporary"]
    assert one.files == {"bad_sum.py": "total = 0\nfor x in []:\n    held = x\n    total += held\n"}
    lines = (("bad_sum.py", 3), ("bad_sum.py", 4))
    assert [(e.code, e.severity, e.places) for e in one.expected] == [
        ("TML101", "warning", lines),
        ("TML201", "", lines),
    ]


def test_what_comments_say() -> None:
    text = "x = 1  # expect: TML101 warning, TML201\ny = '# expect: TML102'\n"
    assert expectations(text) == {1: "TML101 warning, TML201"}
    assert depends_on_comments("x = 1  # torchmemlint: ignore[TML101]")
    assert not depends_on_comments(text)


def test_rewritten_programs_are_kept_if_they_do_the_same() -> None:
    pytest.importorskip("torch")
    from tests.truth.equivalence import Trials, variants
    from tests.truth.pairs import Tally, pairs
    from tests.truth.sample import plans

    examples = [pair.first for pair in pairs(5, plans(5, 6), Tally())]
    trials = Trials()
    found = list(variants(examples, trials))
    assert len(found) > 5 * len(examples)
    assert all(counts["kept"] + counts["does not apply"] > 0 for counts in trials.counts.values())
    for variant in found:
        assert variant.example.places
        assert variant.example.program.files != variant.original.program.files
        assert variant.example.label == variant.original.label
