from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmemlint.findings import Edit, Position, Span
from torchmemlint.fixes.edits import (
    EditError,
    Replacement,
    TextIndex,
    apply_edits,
    clash,
    compatible,
    composed,
    newline_of,
    replace,
    resolve,
)

LINES = st.lists(st.sampled_from(["", "x = 1", "\tπ = 'ü𝄞'", "y\x0cz", "# \u2028 comment"]), min_size=1, max_size=8)


def span(row: int, column: int, end_row: int, end_column: int) -> Span:
    return Span(Position(row, column), Position(end_row, end_column))


def edit(row: int, column: int, end_row: int, end_column: int, content: str) -> Edit:
    return Edit(span(row, column, end_row, end_column), content)


@st.composite
def texts(draw: st.DrawFn) -> str:
    newline = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    start = draw(st.sampled_from(["", "\ufeff"]))
    return start + newline.join(draw(LINES)) + draw(st.sampled_from(["", newline]))


@st.composite
def edited(draw: st.DrawFn) -> tuple[str, list[tuple[int, int, str]], list[Edit]]:
    """A text and edits that do not overlap, in offsets and in rows and columns."""
    text = draw(texts())
    index = TextIndex.of(text)
    # A position between the two characters of a CRLF is not one that any parser gives.
    places = [at for at in range(index.starts[0], len(text) + 1) if text[max(at - 1, 0) : at + 1] != "\r\n"]
    cuts = sorted(draw(st.lists(st.sampled_from(places), unique=True, max_size=8)))
    changes = [
        (start, end, draw(st.sampled_from(["", "new", "(π)", "𝄞"])))
        for start, end in zip(cuts[::2], cuts[1::2], strict=False)
    ]
    edits = [Edit(Span(index.position(start), index.position(end)), content) for start, end, content in changes]
    return text, changes, edits


@given(texts())
def test_positions_and_offsets_are_inverse(text: str) -> None:
    index = TextIndex.of(text)
    for offset in range(index.starts[0], len(text) + 1):
        assert index.offset(index.position(offset)) == offset


@given(edited())
def test_text_outside_the_spans_stays(case: tuple[str, list[tuple[int, int, str]], list[Edit]]) -> None:
    text, changes, edits = case
    result = apply_edits(text, edits)
    at = read = 0
    for start, end, content in changes:
        assert result[read : read + start - at] == text[at:start]
        read += start - at
        assert result[read : read + len(content)] == content
        read += len(content)
        at = end
    assert result[read:] == text[at:]
    assert result.startswith("\ufeff") == text.startswith("\ufeff")


@given(edited(), st.randoms())
def test_order_does_not_matter(case: tuple[str, list[tuple[int, int, str]], list[Edit]], random: object) -> None:
    text, _, edits = case
    shuffled = [*edits, *edits]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert apply_edits(text, shuffled) == apply_edits(text, edits)


def test_inserted_lines_take_the_ending_of_the_file() -> None:
    text = "\ufeffimport os\r\nx = 1\r\n"
    assert apply_edits(text, [edit(2, 1, 2, 1, "import torch\n\n")]) == (
        "\ufeffimport os\r\nimport torch\r\n\r\nx = 1\r\n"
    )


def test_a_byte_order_mark_is_not_a_column() -> None:
    assert apply_edits("\ufeffx", [edit(1, 1, 1, 2, "y")]) == "\ufeffy"


@pytest.mark.parametrize(("text", "newline"), [("", "\n"), ("a\rb", "\r"), ("a\r\nb\n", "\r\n"), ("a\x0cb\nc", "\n")])
def test_newline_is_that_of_the_first_row(text: str, newline: str) -> None:
    assert newline_of(text) == newline


def test_equal_edits_are_made_once() -> None:
    wanted = edit(1, 1, 1, 1, "import torch\n")
    assert apply_edits("x\n", [wanted, wanted]) == "import torch\nx\n"


@pytest.mark.parametrize(
    "edits",
    [
        pytest.param([edit(1, 1, 1, 4, "a"), edit(1, 3, 1, 5, "b")], id="they share a character"),
        pytest.param([edit(1, 2, 1, 2, "a"), edit(1, 2, 1, 2, "b")], id="two insertions at one place"),
        pytest.param([edit(1, 1, 1, 4, "a"), edit(1, 2, 1, 2, "b")], id="an insertion inside"),
        pytest.param([edit(1, 1, 1, 4, "a"), edit(1, 1, 1, 4, "b")], id="one place, two contents"),
        pytest.param([edit(1, 4, 1, 2, "a")], id="it ends before it starts"),
        pytest.param([edit(2, 1, 2, 1, "a")], id="no such row"),
        pytest.param([edit(1, 9, 1, 9, "a")], id="no such column"),
        pytest.param([edit(0, 1, 1, 1, "a")], id="row 0"),
    ],
)
def test_impossible_edits_are_refused(edits: list[Edit]) -> None:
    with pytest.raises(EditError):
        apply_edits("abcdef", edits)


def test_insertions_at_the_edges_of_a_replacement_are_fine() -> None:
    edits = [edit(1, 2, 1, 4, "X"), edit(1, 2, 1, 2, "("), edit(1, 4, 1, 4, ")")]
    assert apply_edits("abcdef", edits) == "a(X)def"


def test_of_two_that_conflict_the_first_is_taken_whole() -> None:
    text = "abcdef\n"
    shared = edit(1, 1, 1, 1, "import torch\n")
    groups = [
        resolve(text, [shared, edit(1, 2, 1, 4, "X")]),
        resolve(text, [shared, edit(1, 3, 1, 5, "Y")]),
        resolve(text, [shared, edit(1, 5, 1, 6, "Z")]),
    ]
    assert compatible(groups) == [0, 2]
    assert compatible(groups[::-1]) == [0, 1]


@st.composite
def replacements(draw: st.DrawFn, text: str) -> tuple[Replacement, ...]:
    """Some that do not clash."""
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=6)))
    found: list[Replacement] = []
    for start, end in zip(cuts[::2], cuts[1::2], strict=False):
        new = Replacement(start, end, draw(st.sampled_from(["", "x", "yy\n"])))
        if not any(clash(new, old) for old in found):
            found.append(new)
    return tuple(sorted(set(found)))


@given(st.data())
def test_one_change_after_another_is_one_change(data: st.DataObject) -> None:
    text = data.draw(st.text("ab\n", max_size=20))
    first = data.draw(replacements(text))
    between = replace(text, first)
    second = data.draw(replacements(between))
    both = composed(text, first, second)
    assert replace(text, both) == replace(between, second)
    assert all(one.end <= other.start and not clash(one, other) for one, other in itertools.pairwise(both))
