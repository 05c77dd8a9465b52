"""Files of tensors: what is read from them, where it lies, and what is copied into objects that exist."""

from __future__ import annotations

from torchmemlint.flow.domain.arguments import Arguments
from torchmemlint.flow.domain.effects import Serve
from torchmemlint.flow.domain.frame import CallSite
from torchmemlint.flow.domain.heap import ELEMENT, State, visible
from torchmemlint.flow.domain.kinds import Kind, Special
from torchmemlint.flow.domain.refs import Bare, Code, Object, Ref
from torchmemlint.flow.domain.values import PLAIN, Value, constant
from torchmemlint.flow.models import containers
from torchmemlint.knowledge import checkpoints as known

NOTED = frozenset({*known.LOADERS, known.SAVING})


def read(site: CallSite, qualified: str) -> Value:
    """Return what a file holds: an object of which nothing is known but where its tensors lie."""
    placed = site.arguments.get(known.LOADERS[qualified], "map_location")
    made = containers.made(site, Kind.OPAQUE, qualified)
    host = placed is not None and is_host(site.state, placed)
    source = Bare.of(site.point.site, site.point.context, True, host)
    site.frame.provenance.derive(source, ())
    site.frame.arise(source)
    return Value(made.refs, source.alone, open=True)


def is_host(state: State, place: Value) -> bool:
    """Does a `map_location` say the host, in whole or in part: by its value, a table of devices, a function?"""
    if isinstance(place.constant, str):
        return place.constant.startswith("cpu")
    return any(type(r) is Code and r.function.name == "<lambda>" for r in place.refs) or any(
        is_host(state, held)
        for r in place.refs
        if type(r) is Object and r.kind is Kind.DICT
        for _, held in visible(state.heap.edges(r))
    )


def restore(site: CallSite, receiver: Value) -> Value:
    """Log that an object takes over a state: `load_state_dict`."""
    given = site.arguments
    whole = Arguments([receiver, *given.positional], given.named, given.star, given.stars)
    site.frame.log(Serve(site.point, known.RESTORING, whole))
    return PLAIN


def state_of(site: CallSite, target: Ref) -> Value:
    """Return the `state_dict()` of an object: its own tensors, which lie where it lies."""
    host = site.state.heap.get(target, Special.HOST)
    on_host = host is not None and host.constant is True
    box = containers.made(site, Kind.DICT, "state")
    for holder in box.each():
        source = Bare.of(site.point.site, site.point.context, True, on_host)
        site.state.heap.put(holder, ELEMENT, Value(graph=source.alone, open=True))
    return box


def moved(state: State, target: Ref, to_host: bool) -> None:
    """Note that an object is brought to the host; if it was, also that it is brought elsewhere."""
    if to_host or state.heap.get(target, Special.HOST) is not None:
        state.heap.put(target, Special.HOST, constant(to_host))


def built(site: CallSite) -> None:
    """Log that a new object takes over a state: `Model.from_pretrained(name, state_dict=state)`."""
    state = site.arguments.named.get("state_dict")
    if state is not None:
        site.frame.log(Serve(site.point, known.BUILDING, Arguments([PLAIN, state])))
