"""The places in the pages about memory.

They are made of `docs/memory.json` (`tools/memory_figures.py`), of the rules' experiments and of plain arithmetic.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

from torchmemlint.sizes import format_size

DOCS = Path(__file__).resolve().parent.parent / "docs"
KINDS = ("parameter", "gradient", "optimizer state", "saved activation", "temporary", "input batch")
STEPS = 100
IMAGE = (64, 3, 224, 224)
WORKERS, PREFETCHED = 4, 2
EXAMPLES, LENGTH = 10_000, 128


@cache
def figures() -> dict[str, Any]:
    """What was worked out."""
    return dict(json.loads((DOCS / "memory.json").read_text(encoding="utf-8")))


def impact(title: str) -> Any:
    """One of the rules' experiments, as it was simulated last."""
    from torchmemlint.runtime.experiments.outcome import Outcome

    run = json.loads((DOCS / "impact.json").read_text(encoding="utf-8"))["simulated"]
    return next(Outcome.from_json(one) for one in run["outcomes"] if one["title"] == title)


def table(head: Iterable[str], *rows: Iterable[object]) -> str:
    """A table of Markdown; columns but the first are aligned to the right."""
    names = list(head)
    lines = [names, ["---", *["--:"] * (len(names) - 1)], *rows]
    return "\n" + "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines) + "\n\n"


def bullets(*lines: str) -> str:
    """A list of Markdown."""
    return "\n" + "\n".join(f"- {line}" for line in lines) + "\n\n"


def size(nbytes: float) -> str:
    """Bytes for people."""
    return format_size(nbytes)


def model_name() -> str:
    """The model of the figures, in a few words."""
    model = figures()["model"]
    return (
        f"{model['depth']} layers of width {model['width']}, {model['words']:,} words, "
        f"{figures()['batches']['1']['parameters']:,} parameters, {model['tokens']} tokens for each example"
    )


# -- 1xx ---------------------------------------------------------------------------------------------------------------


def graph_bytes() -> str:
    """What one step's graph holds, and what a hundred of them would."""
    model, held = figures()["model"], figures()["batches"][str(figures()["model"]["batch"])]["saved"]
    tokens = model["batch"] * model["tokens"]
    spent = impact("a loss summed after its backward").bad.host_growth_per_step
    return bullets(
        f"a float32 scalar: 4 bytes, in a block of {figures()['allocator'][0][1]} bytes",
        f"its graph, live ({model_name()}; {model['batch']} examples): **{size(held)}**, "
        f"that is {size(held / tokens)} for each token",
        f"{STEPS} losses added up before any backward: {STEPS} × {size(held)} = **{size(STEPS * held)}**",
        f"{STEPS} losses added up after their backward (spent): no GPU memory, and some "
        f"{size(spent)} of CPU memory for each step of a small perceptron "
        f"({STEPS} × {size(spent)} = {size(STEPS * spent)})",
        f"{STEPS} spent scalars in a list: {STEPS} × 512 B = {size(STEPS * 512)} of blocks",
    )


# -- 2xx ---------------------------------------------------------------------------------------------------------------


def pass_bytes() -> str:
    """One forward pass with gradients on and off."""
    told, model = figures()["pass"], figures()["model"]
    on, off = told["recording"], told["not recording"]
    scores = model["batch"] * model["tokens"] * model["words"] * 4
    return bullets(
        f"recording: {size(on)} at the peak, beside the parameters",
        f"under `no_grad` or `inference_mode`: {size(off)}; the scores themselves are {model['batch']} × "
        f"{model['tokens']} × {model['words']:,} × 4 B = {size(scores)}",
        f"so gradients that are never used cost {size(on - off)}, {on / off:.1f} times the whole pass",
    )


# -- 3xx ---------------------------------------------------------------------------------------------------------------


def activation_bytes() -> str:
    """What activations save between two convolutions."""
    image = figures()["image"]
    one = image["images"] * image["channels"] * image["pixels"] ** 2 * 4
    rows = []
    for name, told in figures()["activations"].items():
        rows.append(
            (f"`{name}`", *(size(told[form]) if form in told else "-" for form in ("out of place", "in place")))
        )
    text = table(("saved beyond the convolutions", "out of place", "in place"), *rows)
    shape = f"{image['images']} × {image['channels']} × {image['pixels']} × {image['pixels']}"
    return f"\nOne activation is {shape} × 4 B = {size(one)}.\n" + text


def attention_bytes() -> str:
    """Attention with its weights written out, and fused."""
    model, told = figures()["model"], figures()["attention"]
    weights = model["batch"] * model["heads"] * model["tokens"] ** 2 * 4
    return bullets(
        f"the weights of one layer: {model['batch']} examples × {model['heads']} heads × {model['tokens']}² × 4 B = "
        f"{size(weights)}, four times as much where the sequence is twice as long",
        f"saved by the layer, with `softmax(q @ k.T) @ v`: {size(told['by hand'])}",
        f"saved with `scaled_dot_product_attention`: {size(told['fused'])}",
    )


# -- 4xx ---------------------------------------------------------------------------------------------------------------


def loading_bytes() -> str:
    """What batches take on the host."""
    numbers = 1
    for length in IMAGE:
        numbers *= length
    batch = numbers * figures()["dtypes"]["float32"]
    small = numbers * figures()["dtypes"]["int8"]
    shape = " × ".join(map(str, IMAGE))
    return bullets(
        f"one batch: {shape} × 4 B = {size(batch)}; as bytes, to be made float on the device: {size(small)}",
        f"{WORKERS} workers with `prefetch_factor={PREFETCHED}`: {WORKERS} × {PREFETCHED} × {size(batch)} = "
        f"{size(WORKERS * PREFETCHED * batch)} of shared memory",
        f"pinned: a batch more, {size(batch)}, that the system cannot move while it is copied",
        f"on the device: one batch, {size(batch)}; two while the next is copied (`non_blocking=True`)",
    )


# -- 5xx ---------------------------------------------------------------------------------------------------------------


def allocator_bytes() -> str:
    """Requests, blocks and segments."""
    rows = [(f"{request:,} B", f"{block:,} B", size(segment)) for request, block, segment in figures()["allocator"]]
    return table(("asked for", "block (`memory_allocated`)", "segment (`memory_reserved`)"), *rows)


def process_bytes() -> str:
    """What a process takes beside tensors."""
    told = figures()["fixed"]
    low, high = told["context"]
    return bullets(
        f"the CUDA context: {size(low)} to {size(high)}, in no figure of torch's; only `nvidia-smi` counts it",
        f"cuBLAS's workspace: {size(told['workspace'])} for each thread that multiplies matrices (two: forward and "
        f"backward), {size(told['workspace on Hopper'])} on Hopper",
    )


# -- 6xx ---------------------------------------------------------------------------------------------------------------


def dtype_bytes() -> str:
    """Bytes for each number."""
    names: dict[int, list[str]] = {}
    for name, width in figures()["dtypes"].items():
        names.setdefault(width, []).append(f"`{name}`")
    return bullets(*(f"{width} B: {', '.join(same)}" for width, same in sorted(names.items(), reverse=True)))


def step_bytes() -> str:
    """A training step by kind and batch."""
    batches = figures()["batches"]
    rows: list[list[object]] = [
        [kind, *(size(one["kinds"].get(kind, 0)) for one in batches.values())] for kind in KINDS
    ]
    rows.append(["**peak**", *(f"**{size(one['peak'])}**" for one in batches.values())])
    rows.append(["it lies in", *(one["phase"] for one in batches.values())])
    rows.append(["reserved", *(size(one["reserved"]) for one in batches.values())])
    return f"\n{model_name()}; float32, AdamW:\n" + table(
        ("at the peak", *(f"{batch} example{'' if batch == '1' else 's'}" for batch in batches)), *rows
    )


def optimizer_bytes() -> str:
    """State for each parameter."""
    rows = []
    for name, state in sorted(figures()["optimizers"].items(), key=lambda item: item[1]):
        rows.append((name, f"{state:.1f} B", f"{4 + 4 + state:.1f} B"))
    return table(("optimizer", "state of a parameter", "with the parameter and its gradient"), *rows)


def remedy_bytes() -> str:
    """What each remedy leaves."""
    before = figures()["batches"][str(figures()["model"]["batch"])]
    rows: list[tuple[str, str, str, str]] = [("as it is", size(before["peak"]), "", "")]
    for one in figures()["remedies"]:
        share = f"{one['peak'] / before['peak'] - 1:+.0%}"
        rows.append((one["name"], size(one["peak"]), share, one["price"]))
    return f"\n{model_name()}; {figures()['model']['batch']} examples:\n" + table(("", "peak", "", "price"), *rows)


# -- 7xx ---------------------------------------------------------------------------------------------------------------


def framework_bytes() -> str:
    """What trainers gather."""
    words = figures()["model"]["words"]
    predictions = EXAMPLES * LENGTH * words * 4
    chosen = EXAMPLES * LENGTH * figures()["dtypes"]["int64"]
    held = figures()["batches"][str(figures()["model"]["batch"])]["saved"]
    return bullets(
        f"the scores of an evaluation set: {EXAMPLES:,} examples × {LENGTH} tokens × {words:,} words × 4 B = "
        f"**{size(predictions)}** on the GPU, though only the most probable word is wanted: {size(chosen)}",
        f"a step's result kept with its graph before the backward: {size(held)} for each batch of the model on the "
        "page about [the training step](training-step.md); after it, some kilobytes of CPU memory",
    )


MAKERS: dict[str, Callable[[], str]] = {
    "graph-bytes": graph_bytes,
    "pass-bytes": pass_bytes,
    "activation-bytes": activation_bytes,
    "attention-bytes": attention_bytes,
    "loading-bytes": loading_bytes,
    "allocator-bytes": allocator_bytes,
    "process-bytes": process_bytes,
    "dtype-bytes": dtype_bytes,
    "step-bytes": step_bytes,
    "optimizer-bytes": optimizer_bytes,
    "remedy-bytes": remedy_bytes,
    "framework-bytes": framework_bytes,
}
