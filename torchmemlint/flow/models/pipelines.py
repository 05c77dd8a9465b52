"""Pipelines: objects of a library that run networks for their users, and turn gradients off where they infer."""

from __future__ import annotations

from torchmemlint.flow.domain.frame import CallSite
from torchmemlint.flow.domain.kinds import Kind
from torchmemlint.flow.domain.manners import Reading
from torchmemlint.flow.domain.memory import sources_of
from torchmemlint.flow.domain.refs import Object, Ref
from torchmemlint.flow.domain.values import Value, of
from torchmemlint.flow.models import contracted, gradients, modules


def construct(site: CallSite, qualified: str) -> Value | None:
    """Return a new pipeline with the networks that it is given; None where something else is made."""
    owner, _, name = qualified.rpartition(".")
    known = site.machine.index.contracts
    about = owner if name.startswith("from_") else qualified
    if not known.is_pipeline(about):
        return None
    made = Object.of(Kind.OPAQUE, site.point.site, site.point.context, about)
    site.state.heap.drop(made)
    for part in known.names("pipeline-modules").plain & site.arguments.named.keys():
        site.state.heap.put(made, part, site.arguments.named[part])
    return of(made)


def is_pipeline(site: CallSite, target: Ref) -> bool:
    """Is it one of a library's pipelines?"""
    return any(map(site.machine.index.contracts.is_pipeline, contracted.owners(target)))


def run(site: CallSite) -> Value:
    """Run a pipeline: it turns gradients off by itself."""
    site.frame.read(sources_of(site.state, site.arguments.all()), Reading.NUMBER)
    return Value(open=True)


def method(site: CallSite, target: Ref, name: str) -> Value | None:
    """Return the value of a method by which a pipeline runs networks; None for others."""
    known = site.machine.index.contracts
    infers = name in known.names("pipeline-inference").plain
    if not (infers or name in known.names("pipeline-passes").plain) or not is_pipeline(site, target):
        return None
    return run(site) if infers or _is_frozen(site, target) else modules.unseen_forward(site, target)


def _is_frozen(site: CallSite, target: Ref) -> bool:
    """Was it given a network that is frozen? Whether that is the one which runs is not known then."""
    parts = site.machine.index.contracts.names("pipeline-modules").plain
    given = (site.state.heap.get(target, part) for part in parts)
    return any(gradients.is_frozen(site.state, r) for value in given if value is not None for r in value.refs)
