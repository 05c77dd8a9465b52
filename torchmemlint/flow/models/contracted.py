"""Methods that contracts speak of: what frameworks' objects do with what they are given, and what `generate` gives."""

from __future__ import annotations

from collections.abc import Iterable

from torchmemlint.flow.domain.effects import Move
from torchmemlint.flow.domain.frame import CallSite
from torchmemlint.flow.domain.heap import ELEMENT
from torchmemlint.flow.domain.kinds import Kind
from torchmemlint.flow.domain.manners import Reading
from torchmemlint.flow.domain.memory import bare, differentiate, sources_of
from torchmemlint.flow.domain.refs import Key, Object, Ref
from torchmemlint.flow.domain.values import NO_SOURCES, PLAIN, UNKNOWN, Value
from torchmemlint.flow.domain.values import of as value_of
from torchmemlint.knowledge import autograd, metrics
from torchmemlint.knowledge.contracts import Contracts

_OPTIONS = autograd.names("backward-options")
_CALLED = ("runs-without-gradients", "differentiates")


def owners(target: Ref) -> tuple[str, ...]:
    """Return the qualified names of the classes of a library's object."""
    return (
        (target.about,)
        if type(target) is Object and target.kind is Kind.OPAQUE and isinstance(target.about, str)
        else ()
    )


def is_metric(target: Ref) -> bool:
    """Is it an object of a library of metrics? It is a module, but no network."""
    return any(map(metrics.is_metric, owners(target)))


def is_call(known: Contracts, target: Ref, name: str) -> bool:
    """Is it a method that runs without gradients, or differentiates, whoever calls it: a bound one, a thread?"""
    if name not in known.methods or not (type(target) is Object or target.symbolic):
        return False
    if type(target) is Object and target.kind not in (Kind.MODULE, Kind.OPAQUE):
        return False
    return any(known.names(term).has_method(name, owners(target)) for term in _CALLED)


def method(site: CallSite, target: Ref, name: str) -> Value | None:
    """Return the value of a method that a contract speaks of; None for others."""
    known = site.machine.index.contracts
    reads = _is_inherited_reader(site, target, name)
    if name not in known.methods and not reads:
        return None
    of = owners(target)
    if known.names("generates").has_method(name, of):
        return generated(site)
    if known.names("runs-without-gradients").has_method(name, of):
        return Value(open=True)
    if known.names("differentiates").has_method(name, of):
        named = site.arguments.named.items()  # without those of a tensor's own `backward`
        given = [*site.arguments.positional, *(v for name, v in named if name not in _OPTIONS)]
        sources = sources_of(site.state, given[:1])
        if sources:
            differentiate(site.frame, site.state, sources, site.point, False)
            return PLAIN
        return None
    if known.names("reads").has_method(name, of) or reads:
        site.frame.read(sources_of(site.state, site.arguments.all()), Reading.NUMBER)
        return PLAIN
    if known.names("keeps").has_method(name, of):
        site.write(value_of(target), ELEMENT, site.arguments.joined(), True)
        return Value(open=True)
    if known.names("wrappers").has_method(name, of):
        return wrapped(site)
    if known.names("parts").has_method(name, of):
        return site.machine.attribute(site.frame, site.state, value_of(target), name, site.point)
    if known.names("passes").has_method(name, of) and site.arguments.positional:
        return site.arguments.positional[0]
    return None


def _is_inherited_reader(site: CallSite, target: Ref, name: str) -> bool:
    """Has a class of the project a method from a library's class that gives no graph, as `pickle.Unpickler` does?"""
    if type(target) is not Object or target.kind is not Kind.INSTANCE:
        return False
    index = site.machine.index
    reads = index.contracts.names("reads")
    return any(f"{base}.{name}" in reads for base in index.libraries(target.about.cls))


def hold(site: CallSite, made: Ref, classes: Iterable[str]) -> None:
    """Let an object of some library's classes hold what its constructor is given, if that keeps it."""
    if site.machine.index.contracts.names("keeps").has_method("__init__", classes):
        named: Iterable[tuple[Key, Value]] = site.arguments.named.items()
        for key, value in (*enumerate(site.arguments.positional), *named):
            site.write(value_of(made), key, value, True)


def wrapped(site: CallSite) -> Value:
    """Return what a wrapper was given: one thing, or each of several in a tuple."""
    positional = site.arguments.positional
    loaders = site.machine.index.contracts.names("loaders")
    for value in positional:
        if any(str(r.about) in loaders for r in value.refs if type(r) is Object):
            site.frame.log(Move(site.point, value, False))  # its batches come on the device
    if not positional:
        return site.arguments.joined() if site.arguments.named else UNKNOWN
    if len(positional) == 1 or not all(value.refs for value in positional[:2]):
        return positional[0]
    row = Object.of(Kind.TUPLE, site.point.site, site.point.context, "wrapped")
    site.state.heap.drop(row)
    for number, value in enumerate(positional):
        site.state.heap.put(row, number, value)
    return Value(row.alone)


# What `generate` of transformers gives: tokens, or an object that also holds tensors of each step.
# Source: transformers 5.24, generation/utils.py (`GenerateDecoderOnlyOutput`, `GenerateEncoderDecoderOutput`).

_AS_OBJECT = "return_dict_in_generate"
_ASKED = {
    "output_scores": ("scores",),
    "output_logits": ("logits",),
    "output_attentions": ("attentions", "encoder_attentions", "decoder_attentions", "cross_attentions"),
    "output_hidden_states": ("hidden_states", "encoder_hidden_states", "decoder_hidden_states"),
}
_CACHE = ("cache", "past_key_values")  # of version 5, and before


def generated(site: CallSite) -> Value:
    """Return the tokens, which are not followed; or an object whose other parts are tensors of all steps."""
    named = site.arguments.named
    asked = {name for name, value in named.items() if value.constant is True}
    if _AS_OBJECT not in asked:
        return Value(open=True)
    cached = "use_cache" not in named or named["use_cache"].constant is not False
    parts = [part for option, parts in _ASKED.items() if option in asked for part in parts]
    made = Object.of(Kind.DICT, site.point.site, site.point.context, _AS_OBJECT)  # a `ModelOutput` is one
    site.state.heap.drop(made)
    site.state.heap.put(made, "sequences", UNKNOWN)
    steps = Value(graph=bare(site.frame, NO_SOURCES, site.point))
    for part in (*parts, *(_CACHE if cached else ())):
        site.state.heap.put(made, part, steps)
    return Value(made.alone)
