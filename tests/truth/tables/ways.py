"""Ways in: how the value gets into a holder, by kind of holder."""

from __future__ import annotations

from tests.truth.forms import Way

WAY: dict[str, dict[str, Way]] = {
    "sum": {
        "+=": Way("{t} += {v}"),
        "a = a + b": Way("{t} = {t} + {v}"),
        ".add_": Way("{t}.add_({v})", tensor=True),
        "sum()": Way("{t} = sum([{t}, {v}])"),
        "torch.stack": Way("{t} = torch.stack([torch.as_tensor({t}), torch.as_tensor({v})]).sum()", scalar=True),
        "setattr": Way('setattr({obj}, "{attr}", {t} + {v})', attr=True),
        "average": Way("{t} = 0.9 * {t} + 0.1 * {v}"),
    },
    "list": {
        "append": Way("{t}.append({v})"),
        "extend": Way("{t}.extend([{v}])"),
        "+= [v]": Way("{t} += [{v}]"),
        "comprehension": Way("{t}.extend(e for e in [{v}])"),
        "insert": Way("{t}.insert(0, {v})"),
    },
    "dict": {
        "[k] =": Way("{t}[len({t})] = {v}"),
        "update": Way("{t}.update({len({t}): {v}})"),
        "setdefault": Way("{t}.setdefault(len({t}), {v})"),
    },
    "deque": {
        "append": Way("{t}.append({v})"),
        "extend": Way("{t}.extend([{v}])"),
    },
}
CARRIED = "carried"  # the way of a state: it takes the place of the last one
COLLECTED = "collected"  # the way of a loop that is one expression

FOLD = {
    "sum": "{t}",
    "list": "sum({t})",
    "dict": "sum({t}.values())",
    "deque": "sum({t})",
}
CLEAR = {
    "sum": "{t} = {zero}",
    "tensor": "{t} = torch.zeros(())",
    "list": "{t}.clear()",
    "dict": "{t}.clear()",
    "deque": "{t}.clear()",
}
