"""Each program does the same before and after `--fix`, whether the fix tempts or is right."""

from __future__ import annotations

import contextlib
import io
from functools import cache
from pathlib import Path
from textwrap import dedent

import pytest

from torchmemlint.doubts import Confidence
from torchmemlint.engine.one_file import ABOUT_THE_RUN, Profile, Reported, report_of
from torchmemlint.fixes.apply import FixResult, fix_text
from torchmemlint.rules.registry import all_rules

from .tempting import HEAD, RIGHT, TAIL, TEMPTING
from .tempting_elsewhere import ELSEWHERE, MADE_ANYWAY

PATH = Path("program.py")
PROFILE = Profile(frozenset(r.code for r in all_rules() if r.on) - ABOUT_THE_RUN, confidence=Confidence.POSSIBLE)

NARROWED = {  # these are fixed so that nothing else is taken in
    "another statement behind it",
    "another statement before it",
    "a change of what was computed before",
    "in the line of an if",
    "in the line of a loop",
    "a generator that evaluates",  # the decorator of torch covers no caller
    "a generator that yields what training takes",  # the line's own
    "training in the callee",
    "a mixture that is detached where it is read",
}
DOUBTED = {  # for other reasons than what is lost
    "a target that is scaled",
    "validation between steps",
    "validation that keeps what is detached",
    "validation of a network that keeps its output",
    "a sum of losses in a function",
    "a sum on an object",
    "a hook that keeps outputs",
    "a frozen part",
    "numbers of a network that trains elsewhere",
}


@cache
def reported(text: str) -> Reported:
    return report_of(text, PATH, PROFILE, comparing=True)


def fixed(text: str) -> FixResult:
    return fix_text(
        text,
        reported(text).findings,
        lambda text: reported(text).findings,
        unsafe=False,
        arriving=lambda text: reported(text).arriving,
    )


def printed(text: str) -> str:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(text, "program.py", "exec", dont_inherit=True), {"__name__": "__main__"})
    return out.getvalue()


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", [*TEMPTING, *RIGHT])
def test_a_program_does_what_it_did(name: str) -> None:
    pytest.importorskip("torch")
    before = HEAD + dedent({**TEMPTING, **RIGHT}[name]) + TAIL
    after = fixed(before)
    assert after.text == before or printed(after.text) == printed(before)
    if name in TEMPTING:
        assert bool(after.applied) is (name in NARROWED)
    else:
        assert bool(after.applied) is (name not in DOUBTED)
        assert not after.rolled_back


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", [*ELSEWHERE, *MADE_ANYWAY])
def test_a_graph_that_goes_elsewhere_is_left(name: str) -> None:
    pytest.importorskip("torch")
    before = HEAD + {**ELSEWHERE, **MADE_ANYWAY}[name] + TAIL
    after = fixed(before)
    assert bool(after.applied) is (name in MADE_ANYWAY)
    assert after.text == before or printed(after.text) == printed(before)
