"""Holders: what keeps the value over iterations."""

from __future__ import annotations

from tests.truth.forms import Holder

HOLDER: dict[str, Holder] = {
    # names of the host
    "local_sum": Holder("sum", "total", ("total = {zero}",), decl="nonlocal total"),
    "local_tensor": Holder("sum", "total", ("total = torch.zeros(())",), decl="nonlocal total", tensor=True),
    "local_list": Holder("list", "kept", ("kept = []",), decl="nonlocal kept"),
    "dict_of_sums": Holder("sum", 'stats["loss"]', ('stats = {"loss": {zero}}',)),
    "dict_of_lists": Holder("list", 'history["loss"]', ('history = {"loss": []}',)),
    "defaultdict": Holder("list", 'history["loss"]', ("history = defaultdict(list)",)),
    "growing_dict": Holder("dict", "table", ("table = {}",), decl="nonlocal table"),
    "deque": Holder("deque", "recent", ("recent = deque()",), decl="nonlocal recent"),
    "list_slot": Holder("sum", "totals[0]", ("totals = [{zero}, 0]",)),
    "namespace": Holder("sum", "bag.total", ("bag = SimpleNamespace(total={zero}, steps=0)",)),
    "preallocated": Holder(
        "sum",
        "slots[0]",
        ("slots = torch.zeros(4)",),
        tensor=True,
        scalar_only=True,
        clear="slots = torch.zeros(4)",
        decl="nonlocal slots",
    ),
    # attributes
    "self_sum": Holder("sum", "self.total", attrs=("self.total = {zero}",), needs_self=True),
    "self_list": Holder("list", "self.history", attrs=("self.history = []",), needs_self=True),
    "class_attribute": Holder("list", "Trainer.history", class_body=("history = []", ""), needs_self=True),
    "buffer": Holder(
        "sum",
        "{m}.running",
        ('{m}.register_buffer("running", torch.zeros(()))',),
        tensor=True,
        scalar_only=True,
        local=False,
    ),
    # the module
    "global_list": Holder(
        "list",
        "HISTORY",
        top=("HISTORY = []",),
        decl="global HISTORY",
        host_decl="global HISTORY",
        together=True,
    ),
    "global_sum": Holder(
        "sum", "TOTAL", top=("TOTAL = {zero}",), decl="global TOTAL", host_decl="global TOTAL", together=True
    ),
    # objects and functions of the program's own
    "meters": Holder(
        "own",
        "meters",
        ("meters = [Meter(), Meter()]",),
        top=(
            "class Meter:",
            "    def __init__(self):",
            "        self.sum = 0.0",
            "        self.count = 0",
            "",
            "    def update(self, value, n=1):",
            "        self.sum += value * n #@put",
            "        self.count += n",
        ),
        puts={"method": "meters[0].update({v}) #@put"},
        fold="meters[0].sum",
        clear="meters[0].sum = 0.0",
    ),
    "closure_cell": Holder(
        "own",
        "record",
        ("record, recorded = make_recorder()",),
        top=(
            "def make_recorder():",
            "    kept = []",
            "",
            "    def record(value):",
            "        kept.append(value) #@put",
            "",
            "    return record, kept",
        ),
        puts={"call": "record({v}) #@put"},
        fold="sum(recorded)",
        clear="recorded.clear()",
    ),
}
