"""Cuts (what is done to the value), bounds (what empties the holder), guards (what stands around the put), and places
(which file a part is in)."""

from __future__ import annotations

from tests.truth.forms import Bound, Cut, Guard, Place

CUT: dict[str, Cut] = {
    "none": Cut("{v}"),
    "detach": Cut("{v}.detach()", cuts=True),
    "item": Cut("{v}.item()", cuts=True, scalar=True),
    "float": Cut("float({v})", cuts=True, scalar=True),
    "detach_cpu": Cut("{v}.detach().cpu()", cuts=True),
    # the graph comes along
    "clone": Cut("{v}.clone()"),
    "cpu": Cut("{v}.cpu()"),
    "scaled": Cut("{v} / x.size(0)"),
}

BOUND: dict[str, Bound] = {
    "none": Bound(),
    "clear": Bound(("{clear}",)),
    "flush": Bound(("if len({t}) > 3:", "    {t}.clear()"), ("list", "dict", "deque")),
    "maxlen": Bound(kinds=("deque",), swap=("deque()", "deque(maxlen=3)")),
    "pop": Bound(("if len({t}) > 3:", "    {t}.pop({first})"), ("list", "dict")),
}

GUARD: dict[str, Guard] = {
    "plain": Guard(styles=("body", "nested", "method", "split", "collect")),
}

PLACE: dict[str, Place] = {
    "one_file": Place(),
    "engine": Place({"top": "engine.py", "holder": "engine.py", "host": "engine.py"}),
}
