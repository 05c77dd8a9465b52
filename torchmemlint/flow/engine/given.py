"""What a call gives that cannot be followed: which networks the function finds when it is run by itself."""

from __future__ import annotations

from collections.abc import Mapping

from torchmemlint.flow.domain.kinds import Kind
from torchmemlint.flow.domain.refs import Input, Object, Ref
from torchmemlint.flow.engine.binding import Binding
from torchmemlint.flow.ir.ops import Class
from torchmemlint.flow.names.index import Index

Networks = Mapping[str, Class | str]
"""By parameter: a class of the project, or the qualified name of a library's."""


def networks(index: Index, bound: Binding) -> Networks:
    """Return the networks that a call gives, for what is one whatever else it may be.

    Where one of the project's may be wrapped, as for several devices, it is that one.
    """
    found: dict[str, Class | str] = {}
    for formal, value in bound.items():
        if type(formal) is not Input or type(formal.name) is not str:
            continue
        kinds = {_network(index, reference) for reference in value.refs}
        if None not in kinds and kinds:
            own = sorted((kind for kind in kinds if isinstance(kind, Class)), key=lambda c: (c.unit.name, c.span))
            found[formal.name] = own[0] if own else min(str(kind) for kind in kinds)
    return found


def _network(index: Index, reference: Ref) -> Class | str | None:
    """Return the class of a network; None for what may be something else."""
    if type(reference) is not Object:
        return None
    if reference.kind is Kind.MODULE and isinstance(reference.about, str):
        return reference.about
    is_own = reference.kind is Kind.INSTANCE and index.is_network(reference.about.cls)
    return reference.about.cls if is_own else None
