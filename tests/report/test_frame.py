from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchmemlint.findings import Edit
from torchmemlint.report.changes import diff_lines, hunks
from torchmemlint.report.columns import pad, shorten, show, text_width
from torchmemlint.report.frame import WIDEST, Label, code_frame
from torchmemlint.report.paint import Paint

from .samples import span

PLAIN = Paint(False)


def frame(lines: list[str], *place: int, gutter: int = 1) -> list[str]:
    return list(code_frame(lines, span(*place), gutter, PLAIN))


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("total += loss", "loss"),
        ("\tif x:\ttotal += loss", "total"),
        ("name = '損失', loss", "loss"),
        ("name = '損失', loss", "損失"),
        ("e\u0301 = loss", "loss"),
        ("a\x0c = loss", "loss"),
    ],
)
def test_the_mark_stands_below_the_word(line: str, word: str) -> None:
    start = line.index(word) + 1
    _, shown, marked, _ = frame([line], 1, start, 1, start + len(word))
    shown, marked = shown.removeprefix("1 | "), marked.removeprefix("  | ")
    left = len(marked) - len(marked.lstrip())
    assert text_width(shown[: shown.index(word)]) == left
    assert marked.strip() == "^" * text_width(word)


def test_an_empty_span_has_one_mark() -> None:
    assert frame(["abc"], 1, 2, 1, 2)[2] == "  |  ^"
    assert frame([""], 1, 1, 1, 1)[1:3] == ["1 |", "  | ^"]


def test_context_is_two_lines_and_never_blank_at_the_edge() -> None:
    lines = ["a", "", "b", "c", "d", "", "", "e"]
    assert frame(lines, 4, 1, 4, 2) == ["  |", "3 | b", "4 | c", "  | ^", "5 | d", "  |"]


def test_a_span_of_several_lines_has_a_rule() -> None:
    lines = ["f(", "  x,", ")", "end"]
    assert frame(lines, 1, 1, 3, 2) == ["  |", "1 | / f(", "2 | |   x,", "3 | | )", "  | |_^", "4 |   end", "  |"]


def test_a_span_that_ends_with_its_newline_is_one_line() -> None:
    assert frame(["abc", "def"], 1, 1, 2, 1) == ["  |", "1 | abc", "  | ^^^", "2 | def", "  |"]


def test_the_middle_of_a_long_span_is_left_out() -> None:
    lines = [f"line {number}" for number in range(1, 31)]
    shown = frame(lines, 5, 1, 25, 3, gutter=2)
    assert [line[:2].strip() for line in shown if line[:2].strip()] == [
        *("3", "4", "5", "6", "7", "8"),
        *("..", "24", "25", "26", "27"),
    ]
    assert ".. | |" in shown
    assert "24 | | line 24" in shown
    assert not any("line 15" in line for line in shown)


def test_a_very_long_line_is_shown_around_the_span() -> None:
    line = "x" * 1000 + "loss" + "y" * 1000
    _, shown, marked, _ = frame([line], 1, 1001, 1, 1005)
    assert len(shown) < WIDEST + 10
    assert shown[marked.index("^") : marked.rindex("^") + 1] == "loss"


def test_a_span_outside_the_file_has_no_frame() -> None:
    assert frame([], 1, 1, 1, 1) == []
    assert frame(["a"], 5, 1, 5, 2) == []


def labelled(lines: list[str], place: tuple[int, ...], *labels: Label, width: int = 0) -> list[str]:
    return list(code_frame(lines, span(*place), 1, Paint(False, width), labels))


def test_labels_stand_below_what_they_are_about() -> None:
    lines = ["x = make()", "a", "b", "c", "d", "use(x, y)", "e", "f", "g", "h", "end(x)"]
    labels = Label(span(1, 5, 1, 11), "made"), Label(span(6, 5, 6, 6), "used"), Label(span(11, 1, 11, 7), "gone")
    assert labelled(lines, (6, 1, 6, 10), *labels) == [
        "  |", "1 | x = make()", "  |     ------ made", ". |", "4 | c", "5 | d", "6 | use(x, y)",
        "  | ^^^^^^^^^", "  |     - used", "7 | e", "8 | f", ". |", "11 | end(x)", "  | ------ gone", "  |",
    ]  # fmt: skip


def test_marks_that_do_not_overlap_share_a_line() -> None:
    assert labelled(["total = f(x)"], (1, 1, 1, 6), Label(span(1, 9, 1, 13), "made")) == [
        "  |", "1 | total = f(x)", "  | ^^^^^   ---- made", "  |",
    ]  # fmt: skip


def test_a_label_of_the_span_itself_stands_at_its_mark() -> None:
    same = Label(span(1, 1, 1, 2), "one"), Label(span(1, 1, 1, 2), "two")
    assert labelled(["abc"], (1, 1, 1, 2), *same)[2:-1] == ["  | ^ one", "  | two"]
    assert labelled(["f(", ")"], (1, 1, 2, 2), Label(span(1, 1, 2, 2), "all"))[1:-1] == [
        "1 | / f(", "2 | | )", "  | |_^ all",
    ]  # fmt: skip


def test_a_label_of_several_lines_is_marked_on_its_first() -> None:
    assert labelled(["f(  ", ")", "x"], (3, 1, 3, 2), Label(span(1, 1, 2, 2), "call"))[1:3] == ["1 | f(", "  | -- call"]


def test_one_row_between_is_shown_and_more_are_not() -> None:
    lines = [str(number) for number in range(1, 10)]
    assert labelled(lines, (9, 1, 9, 2), Label(span(5, 1, 5, 2), "x"))[1:4] == ["5 | 5", "  | - x", "6 | 6"]
    assert labelled(lines, (9, 1, 9, 2), Label(span(4, 1, 4, 2), "x"))[3] == ". |"


def test_labels_are_wrapped_to_the_width() -> None:
    line = "    " * 6 + "loss = criterion(model(x), y)"
    shown = labelled([line], (1, 25, 1, 29), Label(span(1, 32, 1, 54), "what the network gives is compared"), width=50)
    assert shown[1:-1] == [
        "1 |                         loss = criterion(mod…",
        "  |                         ^^^^   --------------",
        "  |                 what the network gives is",
        "  |                 compared",
    ]
    assert all(text_width(one) <= 50 for one in shown)


def test_labels_beyond_the_file_are_left_out() -> None:
    assert labelled(["a"], (1, 1, 1, 2), Label(span(7, 1, 7, 2), "x")) == frame(["a"], 1, 1, 1, 2)


@settings(deadline=None)  # a busy machine is no mistake
@given(
    st.lists(st.text(alphabet="ab \t損\u0301\x1b\u202e", max_size=12), min_size=1, max_size=12),
    st.integers(1, 12),
    st.integers(1, 12),
    st.integers(0, 11),
    st.integers(1, 12),
)
def test_no_span_breaks_the_frame(lines: list[str], row: int, column: int, more: int, end_column: int) -> None:
    end_row = row + more
    shown = frame(lines, row, column, end_row, max(column, end_column) if more == 0 else end_column, gutter=2)
    assert bool(shown) == (row <= len(lines))
    for line in shown:
        assert "\n" not in line
        assert "\x1b" not in line
        assert "\u202e" not in line
    if shown:
        assert sum("^" in line for line in shown) in (1, 2)


@given(st.text(max_size=40), st.integers(2, 30))
def test_padding_and_shortening_keep_to_the_width(text: str, columns: int) -> None:
    text = show(text).text
    assert text_width(shorten(text, columns)) <= columns
    assert text_width(pad(shorten(text, columns), columns)) == columns


def diff(lines: list[str], *edits: Edit) -> list[str]:
    return list(diff_lines(hunks(lines, edits), 1, PLAIN))


def test_a_change_in_a_line() -> None:
    assert diff(["a", "b", "c"], Edit(span(2, 2, 2, 2), "!")) == ["2 | - b", "2 | + b!"]


def test_new_lines_count_for_the_numbers_below() -> None:
    edits = Edit(span(1, 1, 1, 1), "import torch\n"), Edit(span(4, 1, 4, 2), "D")
    assert diff(["a", "b", "c", "d"], *edits) == ["1 | + import torch", "4 | - d", "5 | + D"]


def test_the_line_below_what_is_inserted_is_shown() -> None:
    lines = ["def f():", "    return 1"]
    edit = Edit(span(1, 1, 1, 1), "@torch.no_grad()\n")
    assert list(diff_lines(hunks(lines, [edit]), 1, PLAIN, lines)) == ["1 | + @torch.no_grad()", "2 |   def f():"]
    at_the_end = Edit(span(3, 1, 3, 1), "x\n")
    assert list(diff_lines(hunks(lines, [at_the_end]), 1, PLAIN, lines)) == ["3 | + x"]


def test_a_removed_line() -> None:
    assert diff(["a", "b", "c"], Edit(span(2, 1, 3, 1), "")) == ["2 | - b"]


def test_an_insertion_at_the_end_of_the_file() -> None:
    assert diff(["a"], Edit(span(2, 1, 2, 1), "b\n")) == ["2 | + b"]


def test_edits_of_neighbouring_lines_are_one_hunk() -> None:
    edits = [Edit(span(1, 1, 1, 1), "with torch.no_grad():\n    "), Edit(span(2, 1, 2, 1), "    ")]
    assert diff(["x", "y"], *edits) == [
        "1 | - x",
        "2 | - y",
        "1 | + with torch.no_grad():",
        "2 | +     x",
        "3 | +     y",
    ]


def test_of_many_lines_the_first_are_shown() -> None:
    lines = [f"x{number}" for number in range(20)]
    edits = [Edit(span(number, 1, number, 1), "    ") for number in range(1, 21)]
    shown = diff(lines, *edits)
    assert len(shown) == 18
    assert shown[8] == "  | - … 12 more lines"


def test_of_many_places_the_first_are_shown() -> None:
    lines = [f"x{number}" for number in range(60)]
    rows = [row for row in range(1, 61) if row % 3]  # each third line stays
    shown = diff(lines, *(Edit(span(row, 1, row, 1), "    ") for row in rows))
    assert len(shown) == 17
    assert shown[-2:] == ["11 | +     x10", "  | … and 32 more lines below"]
    few = diff(lines[:12], *(Edit(span(row, 1, row, 1), "    ") for row in rows if row <= 12))
    assert len(few) == 16


def test_edits_that_do_not_fit_the_file_show_nothing() -> None:
    assert diff(["a"], Edit(span(1, 9, 1, 9), "b")) == []
    assert diff([], Edit(span(3, 1, 3, 1), "b")) == []
