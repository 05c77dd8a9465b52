"""Keys: under which edge something is that a program puts under an index or a name."""

from __future__ import annotations

from torchmemlint.flow.domain.heap import State, visible
from torchmemlint.flow.domain.kinds import Special
from torchmemlint.flow.domain.refs import Behind, Key, Object, Ref
from torchmemlint.flow.domain.values import Value, is_one_of_few


def key_of(value: Value) -> Key:
    """Return the key that an index stands for: a constant, or what is the same thing all along; else the element.

    Of an index that is one of a few, the same ones all along, it is NAMED.
    """
    if value.known:
        return value.constant if type(value.constant) in (str, int) else Special.ELEMENT
    if is_one_of_few(value):
        return Special.NAMED
    if len(value.refs) == 1 and not value.open:
        only = next(iter(value.each()))
        if only.symbolic:
            return only
    return Special.ELEMENT


def each_key(holder: Ref) -> Ref:
    """Return the key that a loop over the keys of a container gives: in turn, each that it has."""
    return Behind.of(holder, ("key", 0))


def is_listed(state: State, key: Ref, base: Value) -> bool:
    """Does a key run over those of another dict, in which each is written out? Then it is one of a few names."""
    if type(key) is not Behind or key is not each_key(key.base) or key.base in base.refs:
        return False
    keys = [k for k, _ in visible(state.heap.edges(key.base))] if type(key.base) is Object else []
    return bool(keys) and all(type(k) is str or k is Special.NAMED for k in keys)
