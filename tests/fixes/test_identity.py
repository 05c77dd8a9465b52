from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from torchmemlint.fixes.edits import Replacement, replace
from torchmemlint.fixes.identity import Change


@given(st.lists(st.integers(0, 40), unique=True, max_size=10), st.lists(st.text("XYZ", max_size=5), min_size=5))
def test_a_place_outside_the_edits_is_followed_exactly_and_others_into_the_new_content(
    cuts: list[int], contents: list[str]
) -> None:
    text = "".join(chr(0x100 + number) for number in range(40))  # every character is another one
    cuts.sort()
    changes = tuple(
        Replacement(start, end, content) for start, end, content in zip(cuts[::2], cuts[1::2], contents, strict=False)
    )
    change = Change(text, replace(text, changes), changes)
    for offset, character in enumerate(text):
        low, high = change.image(offset)
        assert 0 <= low <= high <= len(change.after)
        if not any(one.start <= offset <= one.end for one in changes):
            assert low == high
        if not any(one.start <= offset < one.end for one in changes):
            assert low <= change.after.index(character) <= high
        else:
            touched = next(one for one in changes if one.start <= offset < one.end)
            assert change.after[low:high].endswith(touched.content)


def test_an_insertion_at_the_place_leaves_both_sides_open() -> None:
    changes = (Replacement(2, 2, "("), Replacement(4, 4, ")"))
    change = Change("abcdef", "ab(cd)ef", changes)
    assert [change.image(offset) for offset in range(6)] == [(0, 0), (1, 1), (2, 3), (4, 4), (5, 6), (7, 7)]
