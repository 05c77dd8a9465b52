from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pathspec import GitIgnoreSpec

from torchmemlint.source.wildcards import spec_of

NAMES = st.text("ab*?[]!^-/\\", min_size=1, max_size=12)
PATHS = st.lists(st.text("ab]^-", min_size=1, max_size=5), min_size=1, max_size=4).map("/".join)


@given(st.lists(NAMES, min_size=1, max_size=3), st.lists(PATHS, min_size=1, max_size=8))
def test_the_same_is_matched_as_by_git_patterns(patterns: list[str], paths: list[str]) -> None:
    try:
        plain = GitIgnoreSpec.from_lines(patterns)
        spec = spec_of(patterns)
    except (ValueError, re.error):
        return
    for path in paths:
        assert spec.check_file(path).include == plain.check_file(path).include
        assert spec.check_file(f"{path}/").include == plain.check_file(f"{path}/").include


@pytest.mark.parametrize(
    "pattern", ["*a" * 30 + "b", "a**" * 30 + "b", "[a-z]*" * 30 + "!", "*a" * 30 + "b/*a*a*a*a*c"]
)
def test_no_pattern_takes_long(pattern: str) -> None:
    begin = time.process_time()
    assert not spec_of([pattern]).match_file("a" * 255)
    assert time.process_time() - begin < 1


def test_letters_in_brackets_that_are_none() -> None:
    with pytest.raises(ValueError, match="bad character range"):
        spec_of(["[?--]"])


def test_any_folders_a_few_times_and_no_more() -> None:
    assert spec_of(["**/a/**/b/**/c/**"]).match_file("x/a/b/y/c/z")
    with pytest.raises(ValueError, match="more than 3 times"):
        spec_of(["**/a/" * 9 + "b"])
