"""A few scripts of the grammar that `tools/find_faults.py` takes many of."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from torchmemlint.engine.one_file import Fixing, Profile, check_bytes
from torchmemlint.rules.registry import all_rules

sys.path.insert(0, str(Path(__file__).parent.parent))

import loops

ALL = Profile(frozenset(rule.code for rule in all_rules()), fixing=Fixing.PREVIEW, unsafe=True)


@pytest.mark.parametrize("seed", range(10))
def test_fixes_of_a_script_come_to_rest_with_one_that_compiles(seed: int) -> None:
    text = loops.piece(random.Random(seed))
    compile(text, "<program>", "exec", dont_inherit=True)
    result = check_bytes(text.encode(), Path("a.py"), ALL)
    if result.fixed is not None:
        compile(result.fixed.after, "<program>", "exec", dont_inherit=True)
        again = check_bytes(result.fixed.after.encode(), Path("a.py"), ALL)
        assert again.fixed is None or again.fixed.after == result.fixed.after
