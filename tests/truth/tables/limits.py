"""Cuts (what is done to the value), bounds (what empties the holder), guards (what stands around the put), and places
(which file a part is in)."""

from __future__ import annotations

from tests.truth.forms import Bound, Cut, Guard, Place

_CUTS: dict[str, Cut] = {
    "detach": Cut("{v}.detach()", cuts=True),
    "item": Cut("{v}.item()", cuts=True, scalar=True),
    "float": Cut("float({v})", cuts=True, scalar=True),
    "tolist": Cut("{v}.tolist()", cuts=True, scalar=True),
    "data": Cut("{v}.data", cuts=True),
    "detach_cpu": Cut("{v}.detach().cpu()", cuts=True),
    "detach_clone": Cut("{v}.detach().clone()", cuts=True),
    "clone_detach": Cut("{v}.clone().detach()", cuts=True),
    "numpy": Cut("{v}.detach().cpu().numpy()", cuts=True, scalar=True),
    "argmax": Cut("{v}.argmax()", cuts=True, reshapes=True),
    "compared": Cut("({v} > 0.5).float().mean()", cuts=True, reshapes=True),
    "item_if_tensor": Cut("({v}.item() if torch.is_tensor({v}) else {v})", cuts=True, scalar=True),
    "int": Cut("int({v})", cuts=True, scalar=True),
    "math": Cut("math.sqrt(abs({v}))", cuts=True, scalar=True),
    "item_by_helper": Cut(
        "as_number({v})", cuts=True, scalar=True, top=("def as_number(tensor):", "    return tensor.item()")
    ),
    "detach_by_helper": Cut("cut_off({v})", cuts=True, top=("def cut_off(tensor):", "    return tensor.detach()")),
    "detach_by_type": Cut(
        "plain({v})",
        cuts=True,
        top=(
            "def plain(thing):",
            "    if isinstance(thing, torch.Tensor):",
            "        return thing.detach()",
            "    return thing",
        ),
    ),
    "float_by_map": Cut("next(map(float, [{v}]))", cuts=True, scalar=True),
}

CUT: dict[str, Cut] = {
    "none": Cut("{v}"),
    **_CUTS,
    # the graph comes along
    "clone": Cut("{v}.clone()"),
    "cpu": Cut("{v}.cpu()"),
    "to_device": Cut("{v}.to(DEVICE)"),
    "float_method": Cut("{v}.float()"),
    "double": Cut("{v}.double()", reshapes=True),
    "mean": Cut("{v}.mean()", reshapes=True),
    "contiguous": Cut("{v}.contiguous()"),
    "round": Cut("{v}.round()"),
    "absolute": Cut("abs({v})"),
    "as_tensor": Cut("torch.as_tensor({v})"),
    "scaled": Cut("{v} / x.size(0)"),
    "kept_by_helper": Cut("to_number({v})", reshapes=True, top=("def to_number(tensor):", "    return tensor.mean()")),
}

_INDEXED = ("list", "dict")

BOUND: dict[str, Bound] = {
    "none": Bound(),
    "clear": Bound(("{clear}",)),
    "flush": Bound(("if len({t}) > 3:", "    {t}.clear()"), ("list", "dict", "deque", "set")),
    "periodic": Bound(
        ("batches_done += 1", "if batches_done % 3 == 0:", "    {clear}"),
        init=("batches_done = 0",),
        decl="nonlocal batches_done",
    ),
    "maxlen": Bound(kinds=("deque",), swap=("deque()", "deque(maxlen=3)")),
    "maxsize": Bound(kinds=("own",), swap=("lru_cache(maxsize=None)", "lru_cache(maxsize=3)")),
    "pop": Bound(("if len({t}) > 3:", "    {t}.pop({first})"), _INDEXED),
    "popleft": Bound(("while len({t}) > 3:", "    {t}.popleft()"), ("deque",)),
    "del": Bound(("if len({t}) > 3:", "    del {t}[{first}]"), _INDEXED),
    "del_slice": Bound(("del {t}[:-3]",), ("list",)),
    "trim": Bound(("{t} = {t}[-3:]",), ("list", "tuple", "tensor")),
    "overwritten": Bound(
        put={
            "sum": "{t} = {v}",
            "list": "{t}[:] = [{v}]",
            "dict": "{t}[0] = {v}",
            "tuple": "{t} = ({v},)",
            "tensor": "{t} = torch.as_tensor({v}).reshape(-1)",
        }
    ),
    "flag_off": Bound(parameters=(("keep_values", "False"),)),
    "phase_off": Bound(parameters=(("stage", '"val"'),)),
}

_ALWAYS = ("keep_values", "True")

GUARD: dict[str, Guard] = {
    "plain": Guard(styles=("body", "nested", "method", "split", "collect")),
    "if": Guard(("if x.size(0) > 0:", "    {put}")),
    "if_else": Guard(("if x.size(0) == 0:", "    pass", "else:", "    {put}")),
    "if_walrus": Guard(("if (n := x.size(0)) > 0:", "    {put}")),
    "try_finally": Guard(("try:", "    {put}", "finally:", "    n = 1")),
    "try_except": Guard(("try:", "    {put}", "except RuntimeError:", "    raise")),
    "in_finally": Guard(("try:", "    n = 1", "finally:", "    {put}")),
    "match": Guard(("match x.dim():", "    case 2:", "        {put}", "    case _:", "        pass")),
    "match_stage": Guard(
        ("match stage:", '    case "train" | "fit":', "        {put}", "    case other:", "        print(other)"),
        (("stage", '"train"'),),
    ),
    "nullcontext": Guard(("with contextlib.nullcontext():", "    {put}")),
    "exit_stack": Guard(("with contextlib.ExitStack() as opened:", "    {put}")),
    "once": Guard(("for _ in range(1):", "    {put}")),
    "flag": Guard(("if keep_values:", "    {put}"), (_ALWAYS,)),
    "not_flag": Guard(("if not keep_values:", "    pass", "else:", "    {put}"), (_ALWAYS,)),
    "stage": Guard(('if stage == "train":', "    {put}"), (("stage", '"train"'),)),
    "early_continue": Guard(("if x.size(0) == 0:", "    continue", "{put}"), styles=("body",)),
    "early_return": Guard(("if x.size(0) == 0:", "    return None", "{put}"), styles=("nested", "method")),
    "early_continue_flag": Guard(("if not keep_values:", "    continue", "{put}"), (_ALWAYS,), ("body",)),
}

PLACE: dict[str, Place] = {
    "one_file": Place(),
    "engine": Place({"top": "engine.py", "holder": "engine.py", "host": "engine.py"}),
    "engine_and_state": Place({"top": "engine.py", "holder": "state.py", "host": "engine.py"}),
    "state": Place({"holder": "state.py"}),
    "tools": Place({"top": "tools.py"}),
    "three_files": Place({"top": "tools.py", "holder": "state.py", "host": "engine.py"}),
}
