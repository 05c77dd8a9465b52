"""`x.data`: where a file reads it, and where it changes a tensor by way of it.

Only a rule that is off by default asks, so that nothing but the tensors that the walk came by anyway is taken down
(`facts.data_owners`); the places are found when they are asked for. What has an attribute of that name need not be a
tensor (packed sequences, data sets, batches): something has to show it.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence

import libcst as cst

from torchmemlint.findings import Span
from torchmemlint.flow.facts import FileFacts
from torchmemlint.flow.values import Mode, Tensor
from torchmemlint.immutable import immutable
from torchmemlint.knowledge import operations, torch_api
from torchmemlint.syntax.outline import dotted_text
from torchmemlint.syntax.source_module import Piece, Site
from torchmemlint.syntax.text import text_of
from torchmemlint.syntax.walking import children, contains

_DATA = ".data"
_OF_LAYERS = frozenset({"weight", "bias"})
_INIT = "torch.nn.init."
_FILLING = frozenset(  # in-place methods of `torch.Tensor` that are no operation of the knowledge table
    "bernoulli_ cauchy_ copy_ exponential_ fill_ geometric_ log_normal_ normal_ random_ uniform_ zero_".split()
)
_METADATA = torch_api.METADATA | torch_api.METADATA_ATTRIBUTES | {"data_ptr", "element_size", "storage_offset"}


class How(enum.Enum):
    """What is done by way of `.data`."""

    READ = "read"
    CHANGED = "changed"
    INITIALISED = "initialised"  # handed to a function of `torch.nn.init`


@immutable()
class DataUse:
    """One `x.data`."""

    site: Site  # `x.data`
    owner: str  # source text of x
    how: How
    by: str  # source text of what reads or changes it
    shown: tuple[Site, str]  # what shows that x is a tensor
    statement: Site
    guarded: bool  # gradients are off around it


def uses(facts: FileFacts) -> Iterator[DataUse]:
    """The places, in the order of the file."""
    if _DATA not in facts.source.text:
        return
    owners = {site.span: found for site, found in facts.data_owners.items()}
    found = [use for piece in facts.source.pieces if _DATA in piece.text for use in _of_piece(facts, piece, owners)]
    changed = {id(use.statement.node) for use in found if use.how is How.CHANGED}
    for use in found:
        if use.how is not How.READ or id(use.statement.node) not in changed:  # which is to be put under `no_grad` whole
            yield use


def _of_piece(facts: FileFacts, piece: Piece, owners: Mapping[Span, tuple[Tensor, Mode]]) -> Iterator[DataUse]:
    for path in _paths(piece):
        found = _use(facts, path)
        if found is None:
            continue
        how, by, statement = found
        node = path[-1]
        assert isinstance(node, cst.Attribute)
        site = Site(piece, node)
        owner, mode = owners.get(site.span, (None, Mode.ON))
        guarded = mode is Mode.OFF or _guarded(facts, path)
        if how is How.READ and guarded:
            continue
        shown = _shown(facts, piece, path, owner, how, by)
        if shown is not None:
            yield DataUse(site, text_of(node.value), how, by, shown, Site(piece, statement), guarded)


def _paths(piece: Piece) -> Iterator[list[cst.CSTNode]]:
    """The nodes from the top down to each `x.data`; the same list is used again."""
    path: list[cst.CSTNode] = []

    def walk(node: cst.CSTNode) -> Iterator[list[cst.CSTNode]]:
        path.append(node)
        if type(node) is cst.Attribute and node.attr.value == "data":
            yield path
        for child in children(node):
            yield from walk(child)
        path.pop()

    yield from walk(piece.module)


# -- what is done ----------------------------------------------------------------------------------------------------


def _use(facts: FileFacts, path: Sequence[cst.CSTNode]) -> tuple[How, str, cst.CSTNode] | None:
    """How it is used, by what, and in which statement; None where nobody's tensor is changed or copied."""
    node = path[-1]
    assert isinstance(node, cst.Attribute)
    if isinstance(node.value, cst.Attribute) and node.value.attr.value == "grad":
        return None  # no graph hangs on a gradient
    at, name = len(path) - 1, ""
    while True:
        above = path[at - 1]
        match above:
            case cst.Attribute(attr=attr):
                name = attr.value
                if name in _METADATA or name.startswith("new"):
                    return None  # nothing is read of it but what it is like
            case cst.Call(func=func) if func is path[at]:
                if _works_in_place(name):
                    return How.CHANGED, text_of(above), _statement(path)
                if not _is_view(name):
                    break
            case cst.Subscript(value=value) if value is path[at]:
                pass
            case _:
                break
        at -= 1
    statement = _statement(path)
    top = path[at]
    match above:
        case cst.AssignTarget() | cst.AugAssign() if above is statement or top is not node:
            written = isinstance(above, cst.AssignTarget) or top is not above.value
            if written:
                return How.CHANGED, text_of(statement), statement
        case cst.AssignTarget() | cst.AnnAssign() | cst.Del():
            return None
        case cst.Arg() if at >= 2 and isinstance(call := path[at - 2], cst.Call) and _initialises(facts, call):
            return How.INITIALISED, text_of(call.func), statement
    if isinstance(statement, cst.Assign) and any(_replaces_data(target.target) for target in statement.targets):
        return None  # `p.data = p.data.half()`: another storage for the same parameter, for which there is no other way
    return How.READ, text_of(top), statement


def _replaces_data(target: cst.BaseExpression) -> bool:
    return isinstance(target, cst.Attribute) and target.attr.value == "data"


def _works_in_place(method: str) -> bool:
    if not method.endswith("_") or method.endswith("__"):
        return False
    return method in _FILLING or torch_api.is_known(f"torch.Tensor.{method}")


def _is_view(method: str) -> bool:
    operation = operations.method(method)
    return operation is not None and operation.view


def _initialises(facts: FileFacts, call: cst.Call) -> bool:
    return facts.program.qualify(dotted_text(call.func)).startswith(_INIT)


def _statement(path: Sequence[cst.CSTNode]) -> cst.CSTNode:
    for node in reversed(path):
        if isinstance(node, cst.BaseSmallStatement | cst.BaseCompoundStatement):
            return node
    return path[0]


# -- what shows that it is a tensor -----------------------------------------------------------------------------------


def _shown(
    facts: FileFacts, piece: Piece, path: Sequence[cst.CSTNode], value: Tensor | None, how: How, by: str
) -> tuple[Site, str] | None:
    node = path[-1]
    assert isinstance(node, cst.Attribute)
    owner = node.value
    if value is not None and value.carries_graph:
        if value.history:
            return value.history[0].site, value.history[0].text
        kind = "is a parameter" if value.producer == "parameter" else "carries a graph"
        return value.made or Site(piece, owner), kind
    if how is How.READ:
        return None
    if how is How.INITIALISED:
        return Site(piece, node), f"`{by}` fills tensors"
    loop = _loop_over_parameters(path, text_of(owner))
    if loop is not None:
        return Site(piece, loop), "runs over parameters"
    if isinstance(owner, cst.Attribute):
        if owner.attr.value in _OF_LAYERS:
            return Site(piece, node), f"the `{owner.attr.value}` of a layer is a tensor"
        made = _made_as_parameter(facts, path, text_of(owner))
        if made is not None:
            return Site(piece, made), "is a parameter"
    return None


def _loop_over_parameters(path: Sequence[cst.CSTNode], name: str) -> cst.CSTNode | None:
    """`for p in model.parameters():`, `for p in group["params"]:`."""
    for node in reversed(path):
        if isinstance(node, cst.For) and name in _names(node.target):
            text = text_of(node.iter)
            of_module = text.endswith(("parameters()", "parameters())")) or ".named_parameters(" in text
            return node.iter if of_module or text.endswith(('["params"]', "['params']")) else None
        if isinstance(node, cst.FunctionDef):
            return None
    return None


def _names(target: cst.BaseAssignTargetExpression) -> set[str]:
    if isinstance(target, cst.Tuple | cst.List):
        return {element.value.value for element in target.elements if isinstance(element.value, cst.Name)}
    return {target.value} if isinstance(target, cst.Name) else set()


def _made_as_parameter(facts: FileFacts, path: Sequence[cst.CSTNode], name: str) -> cst.CSTNode | None:
    """`self.name = nn.Parameter(...)` in the class around."""
    cls = next((node for node in path if isinstance(node, cst.ClassDef)), None)
    if cls is None or not name.startswith("self."):
        return None
    pending: list[cst.CSTNode] = [cls]
    while pending:
        node = pending.pop()
        match node:
            case cst.Assign(targets=[cst.AssignTarget(target=target)], value=cst.Call(func=func)):
                qualified = facts.program.qualify(dotted_text(func))
                if qualified in ("torch.nn.Parameter", "torch.nn.parameter.Parameter") and text_of(target) == name:
                    return node
            case _:
                pending += children(node)
    return None


def _guarded(facts: FileFacts, path: Sequence[cst.CSTNode]) -> bool:
    """`with torch.no_grad():` around it, or `@torch.no_grad()` on the function."""
    off, qualify = facts.program.contracts.off, facts.program.qualify
    for at in range(len(path) - 1, -1, -1):
        node = path[at]
        if isinstance(node, cst.With) and any(
            isinstance(item.item, cst.Call) and qualify(dotted_text(item.item.func)) in off for item in node.items
        ):
            return not any(contains(item, path[-1]) for item in node.items)
        if isinstance(node, cst.FunctionDef):
            named = (d.decorator.func if isinstance(d.decorator, cst.Call) else d.decorator for d in node.decorators)
            return any(qualify(dotted_text(name)) in off for name in named)
    return False
