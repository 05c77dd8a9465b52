"""Functions that call a function on each leaf of nested containers, and give the same containers of what it returns.

Sources: torch 2.13 `utils/_pytree.py`, optree 0.17 `ops.py`, dm-tree 0.1 `__init__.py`, lightning-utilities 0.15
`core/apply_func.py`, accelerate 1.12 `utils/operations.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from torchmemlint.flow.domain.frame import CallSite
from torchmemlint.flow.domain.heap import visible
from torchmemlint.flow.domain.kinds import Kind
from torchmemlint.flow.domain.memory import begin
from torchmemlint.flow.domain.refs import Key, Object
from torchmemlint.flow.domain.values import NOTHING, Value, join

_BOXES = frozenset({Kind.LIST, Kind.TUPLE, Kind.DICT})
_DEPTH = 4  # of containers in each other; what lies deeper is taken for a leaf


def _mapped(site: CallSite, function: int, tree: int, names: tuple[str, str]) -> Value:
    return _copied(site, site.value(function, names[0]), site.value(tree, names[1]), ())


def _copied(site: CallSite, function: Value, tree: Value, way: tuple[Key, ...]) -> Value:
    boxes = frozenset(r for r in tree.refs if type(r) is Object and r.kind in _BOXES and len(way) < _DEPTH)
    result = NOTHING
    for holder in sorted(boxes, key=lambda r: r.serial):
        made = Object.of(holder.kind, site.point.site, site.point.context, ("mapped", *way))
        result = join(result, begin(site.frame, site.state, made, site.point))
        for key, value in list(visible(site.state.heap.edges(holder))):
            site.state.heap.put(made, key, _copied(site, function, value, (*way, key)))
    if boxes != tree.refs or not boxes:
        result = join(result, site.call(function, tree._replace(refs=tree.refs - boxes)))
    return result


FUNCTIONS: dict[str, Callable[[CallSite], Value]] = {
    **{
        f"{module}.{name}": partial(_mapped, function=place, tree=place + 1, names=("func", "tree"))
        for module in ("torch.utils._pytree", "torch.utils._cxx_pytree", "torch.utils.pytree", "optree")
        for name, place in (("tree_map", 0), ("tree_map_", 0), ("tree_map_only", 1), ("tree_map_only_", 1))
    },
    "tree.map_structure": partial(_mapped, function=0, tree=1, names=("func", "structures")),
    "accelerate.utils.recursively_apply": partial(_mapped, function=0, tree=1, names=("func", "data")),
    **{
        f"{module}.apply_to_collection": partial(_mapped, function=2, tree=0, names=("function", "data"))
        for module in ("lightning_utilities", "lightning_utilities.core.apply_func")
    },
}
