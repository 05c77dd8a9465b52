"""Holders: what keeps the value over iterations."""

from __future__ import annotations

from tests.truth.forms import Holder

from .objects import OBJECT

_NAMES: dict[str, Holder] = {  # of the host
    "local_sum": Holder("sum", "total", ("total = {zero}",), decl="nonlocal total"),
    "local_tensor": Holder("sum", "total", ("total = torch.zeros(())",), decl="nonlocal total", tensor=True),
    "local_list": Holder("list", "kept", ("kept = []",), decl="nonlocal kept"),
    "local_set": Holder("set", "unique", ("unique = set()",), decl="nonlocal unique"),
    "local_tuple": Holder("tuple", "series", ("series = ()",), decl="nonlocal series"),
    "growing_tensor": Holder("tensor", "curve", ("curve = torch.zeros(0, device=DEVICE)",), decl="nonlocal curve"),
    "growing_dict": Holder("dict", "table", ("table = {}",), decl="nonlocal table"),
    "ordered_dict": Holder("dict", "table", ("table = OrderedDict()",), decl="nonlocal table"),
    "deque": Holder("deque", "recent", ("recent = deque()",), decl="nonlocal recent"),
    "linked_list": Holder(
        "own",
        "chain",
        ("chain = (0.0, None)",),
        decl="nonlocal chain",
        puts={"pair": "chain = ({v}, chain) #@put"},
        fold="chain[0]",
        clear="chain = (0.0, None)",
    ),
    "alias_of_append": Holder(
        "own",
        "keep",
        ("everything = []", "keep = everything.append"),
        puts={"call": "keep({v}) #@put"},
        fold="sum(everything)",
        clear="everything.clear()",
    ),
    "second_name": Holder(
        "list", "same_list", ("kept = []", "same_list = kept"), fold="sum(kept)", clear="kept.clear()"
    ),
    "preallocated": Holder(
        "sum",
        "slots[0]",
        ("slots = torch.zeros(4)",),
        tensor=True,
        scalar_only=True,
        clear="slots = torch.zeros(4)",
        decl="nonlocal slots",
    ),
}

_ENTRIES: dict[str, Holder] = {  # of something that the host has
    "dict_of_sums": Holder("sum", 'stats["loss"]', ('stats = {"loss": {zero}}',)),
    "dict_of_dicts": Holder("sum", 'stats["train"]["loss"]', ('stats = {"train": {"loss": {zero}}}',)),
    "dict_of_lists": Holder("list", 'history["loss"]', ('history = {"loss": []}',)),
    "defaultdict": Holder("list", 'history["loss"]', ("history = defaultdict(list)",)),
    "setdefault": Holder("list", 'history.setdefault("loss", [])', ("history = {}",), clear="history.clear()"),
    "defaultdict_of_sums": Holder("sum", 'stats["loss"]', ("stats = defaultdict(float)",), clear='stats["loss"] = 0.0'),
    "defaultdict_of_deques": Holder("deque", 'buffers["loss"]', ("buffers = defaultdict(deque)",)),
    "list_slot": Holder("sum", "totals[0]", ("totals = [{zero}, 0]",)),
    "list_of_lists": Holder("list", "columns[1]", ("columns = [[], []]",)),
    "namespace": Holder("sum", "bag.total", ("bag = SimpleNamespace(total={zero}, steps=0)",)),
    "dataclass_field": Holder(
        "sum", "progress.total", ("progress = Progress({zero})",), ("@dataclass", "class Progress:", "    total: float")
    ),
    "dataclass_list": Holder(
        "list",
        "journal.entries",
        ("journal = Journal()",),
        ("@dataclass", "class Journal:", "    entries: list = field(default_factory=list)"),
    ),
}

_ATTRIBUTES: dict[str, Holder] = {
    "self_sum": Holder("sum", "self.total", attrs=("self.total = {zero}",), needs_self=True),
    "self_list": Holder("list", "self.history", attrs=("self.history = []",), needs_self=True),
    "self_dict": Holder("sum", 'self.stats["loss"]', attrs=('self.stats = {"loss": {zero}}',), needs_self=True),
    "self_memo": Holder("dict", "self.memo", attrs=("self.memo = {}",), needs_self=True),
    "self_nested": Holder(
        "sum", "self.bag.total", attrs=("self.bag = SimpleNamespace(total={zero})",), needs_self=True
    ),
    "self_object_list": Holder(
        "list", "self.bag.entries", attrs=("self.bag = SimpleNamespace(entries=[])",), needs_self=True
    ),
    "class_attribute": Holder("list", "Trainer.history", class_body=("history = []", ""), needs_self=True),
    "shared_attribute": Holder("list", "self.history", class_body=("history = []", ""), needs_self=True),
    "mixin": Holder(
        "own",
        "self.tracked",
        top=(
            "class Tracks:",
            "    tracked = ()",
            "",
            "    def track(self, value):",
            "        self.tracked = (*self.tracked, value) #@put",
        ),
        bases="Tracks",
        needs_self=True,
        puts={"inherited": "self.track({v}) #@put"},
        fold="sum(self.tracked)",
        clear="self.tracked = ()",
    ),
    "base_class": Holder(
        "own",
        "self.logged",
        top=(
            "class BaseTrainer:",
            "    def note(self, name, value):",
            "        self.logged.setdefault(name, []).append(value) #@put",
        ),
        bases="BaseTrainer",
        attrs=("self.logged = {}",),
        needs_self=True,
        puts={"inherited": 'self.note("loss", {v}) #@put'},
        fold='sum(self.logged.get("loss", []))',
        clear='self.logged["loss"] = []',
    ),
    "buffer": Holder(
        "sum",
        "{m}.running",
        ('{m}.register_buffer("running", torch.zeros(()))',),
        tensor=True,
        scalar_only=True,
        local=False,
    ),
    "model_attribute": Holder("list", "{m}.seen", ("{m}.seen = []",), local=False),
}

_MODULE: dict[str, Holder] = {
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
    "global_dict": Holder("sum", 'STATE["loss"]', top=('STATE = {"loss": {zero}}',)),
    "global_cache": Holder(
        "dict", "CACHE", top=("CACHE = {}",), decl="global CACHE", host_decl="global CACHE", together=True
    ),
    "class_of_module": Holder("list", "Log.entries", top=("class Log:", "    entries = []")),
    "function_attribute": Holder(
        "list", "remember_all.kept", top=("def remember_all():", "    return None", "", "", "remember_all.kept = []")
    ),
}

_HOOKS: dict[str, Holder] = {
    "hook_lambda": Holder(
        "hook",
        "captured",
        ("captured = []", "{m}.register_forward_hook(lambda module, args, out: captured.append({v})) #@put"),
        puts={"hook": ""},
        fold="sum(e.sum() for e in captured)",
        clear="captured.clear()",
    ),
    "hook_function": Holder(
        "hook",
        "captured",
        (
            "captured = {}",
            "",
            "def capture(module, args, out):",
            "    captured[len(captured)] = {v} #@put",
            "",
            "handle = {m}.register_forward_hook(capture)",
        ),
        puts={"hook": ""},
        fold="sum(e.sum() for e in captured.values())",
        clear="captured.clear()",
    ),
    "hook_object": Holder(
        "hook",
        "capture",
        ("capture = Capture()", "{m}.register_forward_hook(capture)"),
        top=(
            "class Capture:",
            "    def __init__(self):",
            "        self.seen = []",
            "",
            "    def __call__(self, module, args, out):",
            "        self.seen.append({v}) #@put",
        ),
        puts={"hook": ""},
        fold="sum(e.sum() for e in capture.seen)",
        clear="capture.seen.clear()",
    ),
    "hook_method": Holder(
        "hook",
        "recorder",
        ("recorder = Recorder({m})",),
        top=(
            "class Recorder:",
            "    def __init__(self, module):",
            "        self.mean = 0.0",
            "        self.handle = module.register_forward_hook(self.hook)",
            "",
            "    def hook(self, module, args, out):",
            "        self.mean = self.mean + {v}.float().mean() #@put",
        ),
        puts={"hook": ""},
        fold="recorder.mean",
        clear="recorder.mean = 0.0",
    ),
}

HOLDER: dict[str, Holder] = {**_NAMES, **_ENTRIES, **_ATTRIBUTES, **_MODULE, **OBJECT, **_HOOKS}
