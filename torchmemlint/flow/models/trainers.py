"""Trainers of transformers and its like: objects that hold what they, and their settings, are given."""

from __future__ import annotations

from torchmemlint.flow.domain.frame import CallSite
from torchmemlint.flow.domain.kinds import Kind, Special
from torchmemlint.flow.domain.refs import Object, Ref
from torchmemlint.flow.domain.values import UNKNOWN, of

_POSITIONAL = ("model", "args", "data_collator", "train_dataset", "eval_dataset")  # the same in all releases


def hand(site: CallSite, made: Ref) -> None:
    """Let an object of a class that derives from a trainer hold what it is made with, beside its own attributes."""
    box = Object.of(Kind.OPAQUE, site.point.site, site.point.context, "arguments")
    site.state.heap.drop(box)
    hold(site, box)
    site.write(of(made), Special.GIVEN, of(box))


def hold(site: CallSite, made: Object) -> None:
    """Let a trainer, or its settings, hold each argument under its name; NAMED says that there may be others."""
    given = site.arguments
    named = [*zip(_POSITIONAL, given.positional, strict=False), *given.named.items()]
    for name, value in named:
        site.state.heap.put(made, name, value)
    if given.star is not None or given.stars is not None or len(given.positional) > len(_POSITIONAL):
        site.state.heap.put(made, Special.NAMED, UNKNOWN)
