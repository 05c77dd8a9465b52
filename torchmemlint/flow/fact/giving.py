"""Giving: the networks that calls give which were not followed, said of places in files."""

from __future__ import annotations

from collections.abc import Mapping

from torchmemlint.flow.engine.given import Networks
from torchmemlint.flow.fact.place import Place
from torchmemlint.flow.fact.places import Places
from torchmemlint.flow.ir.ops import Class
from torchmemlint.flow.names.sources import Sources

Placed = Mapping[str, Place | str]
"""By parameter: where a class of the project stands, or the qualified name of a library's."""


def placed(places: Places, given: Networks) -> Placed:
    """Return where the classes stand."""
    return {name: places.of_span(k.unit, k.span) if isinstance(k, Class) else k for name, k in given.items()}


def found(sources: Sources, given: Placed) -> Networks:
    """Return the classes that stand there, as far as their files can be read."""
    networks: dict[str, Class | str] = {}
    for name, kind in given.items():
        if isinstance(kind, str):
            networks[name] = kind
        elif (unit := sources.unit(kind.path)) is not None:
            networks.update((name, cls) for cls in unit.classes if cls.span == kind.span)
    return networks
