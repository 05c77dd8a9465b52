"""Decoys: harmless lines of an iteration that look like what is sought."""

from __future__ import annotations

from tests.truth.forms import Decoy

DECOY: dict[str, Decoy] = {
    "none": Decoy(),
    # what has no graph
    "counter": Decoy(("images += x.size(0)",), ("images = 0",), "nonlocal images"),
    "hits": Decoy(("hits += (y.argmax(1) == 0).sum()",), ("hits = 0",), "nonlocal hits"),
    "learning_rates": Decoy(('rates.append({o}.param_groups[0]["lr"])',), ("rates = []",)),
    "input_means": Decoy(("means.append(x.mean())",), ("means = []",)),
    "gradient_norms": Decoy(
        ("norms.append([p.grad.norm() for p in {m}.parameters() if p.grad is not None])",), ("norms = []",)
    ),
    "weights": Decoy(
        ("snapshots.append([p.detach().sum() for p in {m}.parameters()])",),
        ("snapshots = []",),
    ),
    "texts": Decoy(('notes.append(f"{float({s}):.3f}")',), ("notes = []",)),
    "shapes": Decoy(("shapes[len(shapes)] = x.shape",), ("shapes = {}",)),
    "hook_without_graph": Decoy(
        init=(
            "means = []",
            "{m}.register_forward_hook(lambda module, args, out: means.append(args[0].detach().mean()))",
        )
    ),
    "backward_hook": Decoy(
        init=(
            "norms = []",
            "",
            "def note_gradient(module, before, after):",
            "    if after[0] is not None:",
            "        norms.append(after[0].norm())",
            "",
            "handle = {m}.register_full_backward_hook(note_gradient)",
        )
    ),
    "clipped_gradients": Decoy(
        init=("for p in {m}.parameters():", "    p.register_hook(lambda gradient: gradient.clamp(-1, 1))")
    ),
    # a graph that is kept once, and replaced
    "last_name": Decoy(("last_seen = {v}",), ("last_seen = None",), "nonlocal last_seen"),
    "last_entry": Decoy(('latest["value"] = {v}',), ("latest = {}",)),
    "last_slot": Decoy(("ring[0] = {v}",), ("ring = [None, None]",)),
    "last_attribute": Decoy(("note.last = {v}",), ("note = SimpleNamespace(last=None)",)),
    "last_of_class": Decoy(("Last.seen = {v}",), top=("class Last:", "    seen = None")),
    "short_deque": Decoy(("lately.append({v})",), ("lately = deque(maxlen=2)",)),
    "new_list": Decoy(("pending = []", "pending.append({v})")),
    "emptied_list": Decoy(("pending.append({v})", "pending.clear()"), ("pending = []",)),
    "own_sum": Decoy(("small_sum = 0.0", "for _ in range(2):", "    small_sum = small_sum + {s}")),
    "deleted": Decoy(("twice = 2 * {s}", "del twice")),
}
