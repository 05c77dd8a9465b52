"""Ways in: how the value gets into a holder, by kind of holder."""

from __future__ import annotations

from tests.truth.forms import Way

WAY: dict[str, dict[str, Way]] = {
    "sum": {
        "+=": Way("{t} += {v}"),
        "a = a + b": Way("{t} = {t} + {v}"),
        "a = b + a": Way("{t} = {v} + {t}"),
        "-=": Way("{t} -= {v}"),
        ".add_": Way("{t}.add_({v})", tensor=True),
        "sum()": Way("{t} = sum([{t}, {v}])"),
        "sum of generator": Way("{t} = sum(e for e in ({t}, {v}))"),
        "torch.add": Way("{t} = torch.add(torch.as_tensor({t}), {v})", scalar=True),
        "torch.stack": Way("{t} = torch.stack([torch.as_tensor({t}), torch.as_tensor({v})]).sum()", scalar=True),
        "torch.maximum": Way("{t} = torch.maximum(torch.as_tensor({t}), torch.as_tensor({v}))", scalar=True),
        "operator.add": Way("{t} = operator.add({t}, {v})"),
        "functools.reduce": Way("{t} = functools.reduce(operator.add, [{t}, {v}])"),
        "setattr": Way('setattr({obj}, "{attr}", {t} + {v})', attr=True),
        "vars()": Way('vars({obj})["{attr}"] = {t} + {v}', attr=True),
        "average": Way("{t} = 0.9 * {t} + 0.1 * {v}"),
        "conditional": Way("{t} = {t} + ({v} if x.size(0) > 0 else 0.0)"),
        "helper": Way("{t} = combine({t}, {v})", top=("def combine(old, new):", "    return old + new")),
        "chained": Way("{t} = latest = {t} + {v}"),
        "unpacking": Way("{t}, n = {t} + {v}, x.size(0)"),
    },
    "list": {
        "append": Way("{t}.append({v})"),
        "extend": Way("{t}.extend([{v}])"),
        "+= [v]": Way("{t} += [{v}]"),
        "comprehension": Way("{t}.extend(e for e in [{v}])"),
        "insert": Way("{t}.insert(0, {v})"),
        "slice": Way("{t}[len({t}):] = [{v}]"),
        "list.append": Way("list.append({t}, {v})"),
        "append walrus": Way("{t}.append(latest := {v})"),
        "append tuple": Way("{t}.append((x.size(0), {v}))", fold="sum(e[1] for e in {t})"),
        "append dict": Way('{t}.append({"loss": {v}})', fold='sum(e["loss"] for e in {t})'),
        "append, then fill": Way(
            "filled({t}, {v})",
            top=(
                "def filled(store, value):",
                "    entry = {}",
                "    store.append(entry) #@put",
                '    entry["loss"] = value',
            ),
            fold='sum(e["loss"] for e in {t})',
        ),
        "append partial": Way("{t}.append(functools.partial(float, {v}))", fold="sum(e.args[0] for e in {t})"),
        "helper": Way("push({t}, {v})", top=("def push(store, value):", "    store.append(value) #@put")),
        "helper returns": Way(
            "with_one_more({t}, {v})",
            top=("def with_one_more(store, value):", "    store += [value] #@put", "    return store"),
        ),
    },
    "dict": {
        "[k] =": Way("{t}[len({t})] = {v}"),
        "update": Way("{t}.update({len({t}): {v}})"),
        "setdefault": Way("{t}.setdefault(len({t}), {v})"),
        "|=": Way("{t} |= {len({t}): {v}}"),
        "__setitem__": Way("{t}.__setitem__(len({t}), {v})"),
        "helper": Way("store({t}, {v})", top=("def store(table_, value):", "    table_[len(table_)] = value #@put")),
        "memo": Way(
            "memo({t}, len({t}), lambda: {v})",
            top=(
                "def memo(known, key, make):",
                "    if key not in known:",
                "        known[key] = make() #@put",
                "    return known[key]",
            ),
        ),
    },
    "deque": {
        "append": Way("{t}.append({v})"),
        "appendleft": Way("{t}.appendleft({v})"),
        "extend": Way("{t}.extend([{v}])"),
        "+=": Way("{t} += [{v}]"),
    },
    "set": {
        "add": Way("{t}.add({v})"),
        "update": Way("{t}.update([{v}])"),
        "|=": Way("{t} |= {{v}}"),
    },
    "tuple": {
        "+=": Way("{t} += ({v},)"),
        "(*t, v)": Way("{t} = (*{t}, {v})"),
    },
    "tensor": {
        "torch.cat": Way("{t} = torch.cat([{t}, torch.as_tensor({v}).reshape(-1)])"),
        "torch.hstack": Way("{t} = torch.hstack(({t}, torch.as_tensor({v}).flatten()))"),
    },
}
ZERO = "0.0"  # what a sum starts with
CARRIED = "carried"  # the way of a state: it takes the place of the last one
COLLECTED = "collected"  # the way of a loop that is one expression

FOLD = {
    "sum": "{t}",
    "list": "sum({t})",
    "dict": "sum({t}.values())",
    "deque": "sum({t})",
    "set": "sum({t})",
    "tuple": "sum({t})",
    "tensor": "{t}.sum()",
}
CLEAR = {
    "sum": "{t} = {zero}",
    "tensor_sum": "{t} = torch.zeros(())",
    "list": "{t}.clear()",
    "dict": "{t}.clear()",
    "deque": "{t}.clear()",
    "set": "{t}.clear()",
    "tuple": "{t} = ()",
    "tensor": "{t} = torch.zeros(0, device=DEVICE)",
}
