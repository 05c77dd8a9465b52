"""What would save memory: the plan changed in one respect, and run again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from torchmemlint.immutable import immutable
from torchmemlint.runtime.estimates.plan import Plan

MICRO_BATCHES = 4


@immutable()
class Remedy:
    """A change of a plan, and what it costs beside memory."""

    name: str
    plan: Plan
    price: str


def remedies(plan: Plan) -> Iterator[Remedy]:
    """The changes that are worth a try for a plan, each by itself."""
    if not plan.training:
        if plan.dtype == "float32":
            yield Remedy("bfloat16 parameters", replace(plan, dtype="bfloat16"), "rounding")
        return
    if not plan.checkpoint:
        yield Remedy("checkpointing", replace(plan, checkpoint=True), "a second forward, about a third more time")
    if plan.amp is None and plan.dtype == "float32":
        yield Remedy("mixed precision (bfloat16)", replace(plan, amp="bfloat16"), "rounding; usually faster")
    if plan.accumulate == 1 and plan.batch >= MICRO_BATCHES:
        small = replace(plan.with_batch(plan.batch // MICRO_BATCHES), accumulate=MICRO_BATCHES)
        yield Remedy(f"accumulation over {MICRO_BATCHES} micro-batches", small, "smaller kernels; batch norm differs")
    for optimizer, price in (
        ("adamw8bit", "quantised state (bitsandbytes)"),
        ("adafactor", "factored second moments"),
        ("sgd", "another optimizer altogether"),
    ):
        if optimizer != plan.optimizer:
            yield Remedy(f"optimizer {optimizer}", replace(plan, optimizer=optimizer), price)
