"""Names and lines without meaning, what a text needs imported, and sizes."""

from __future__ import annotations

# Names that make programs differ where nothing else does.
NAMES: dict[str, tuple[str, ...]] = {
    "pred": ("pred", "output", "y_hat", "scores", "z"),
    "loss": ("loss", "objective", "batch_loss", "cost", "l"),
    "total": ("total", "running_total", "acc", "epoch_loss"),
    "kept": ("kept", "outputs", "results", "log"),
    "history": ("history", "records", "trace"),
    "stats": ("stats", "sums", "metrics"),
    "value": ("value", "item_", "current"),
    "model": ("model", "net", "network"),
    "hidden": ("hidden", "h", "state_"),
    "Trainer": ("Trainer", "Runner", "Experiment"),
    "do_step": ("step", "one_step", "process"),
    "host_run": ("run", "fit", "epoch_"),
}
NOISE: tuple[str, ...] = (
    "",
    "",
    "",
    "count = y.size(0)",
    "scale = 1.0 / x.size(0)",
    "flat = x.flatten(1)",
    "largest = x.abs().max()",
)
PACKED: tuple[str, ...] = ("got", "packed_", "step_out")  # what a call's result is called where it is packed

# What a program's text needs: modules by the word before a dot, and names by the module that has them.
MODULES: tuple[str, ...] = (
    "asyncio",
    "contextlib",
    "copy",
    "functools",
    "itertools",
    "math",
    "operator",
    "queue",
    "threading",
)
FROM_MODULES: dict[str, tuple[str, ...]] = {
    "collections": ("OrderedDict", "defaultdict", "deque", "namedtuple"),
    "concurrent.futures": ("ThreadPoolExecutor",),
    "dataclasses": ("dataclass", "field"),
    "types": ("SimpleNamespace",),
    "typing": ("NamedTuple",),
}

# What is written is as large as in real programs (linters read sizes); what is run is small.
SIZES: dict[str, str] = {"51200": "24", "256": "2", "1024": "4", "4096": "8", "1000": "2"}
