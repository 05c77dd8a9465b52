"""Nothings: what is called but is no network, whatever else may stand in its place."""

from __future__ import annotations

from collections.abc import Iterable

from torchmemlint.flow.domain.kinds import Kind
from torchmemlint.flow.domain.refs import Behind, Object, Ref
from torchmemlint.flow.models.bareness import is_tool
from torchmemlint.flow.names.index import Index


def tools(index: Index, callees: Iterable[Ref]) -> set[Ref]:
    """Return those that are tools of a library: where one may be called, the others are of other programs' branches."""
    return {callee for callee in callees if is_tool(index.contracts, callee)}


def is_missing(index: Index, part: Ref) -> bool:
    """Is it an attribute of a network of the project that none of its methods names? To read it would raise."""
    if type(part) is not Behind or type(part.base) is not Object or part.base.kind is not Kind.INSTANCE:
        return False
    cls = part.base.about.cls
    methods = [method for base in index.order(cls) for method in base.methods.values()]
    return index.libraries(cls) == {"torch.nn.Module"} and not any(part.key in one.mentions for one in methods)
