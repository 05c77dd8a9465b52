"""What a file saves: told from the standard parser's tree, as functions that only save are not walked."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchmemlint.flow.program import Program
from torchmemlint.syntax.outline import dotted

# Of FSDP's state dict configurations, and of `torch.distributed.checkpoint.state_dict.StateDictOptions`.
_ON_HOST = frozenset({"offload_to_cpu", "cpu_offload"})


def saves_from_devices(program: Program) -> bool:
    """Does the file save something that it has not moved to the host first?"""
    for piece in program.source.pieces:
        if "torch.save(" in piece.text:
            if piece.outline is None:
                return True
            for around, call in _saves(piece.outline, piece.outline):
                if not call.args or not _is_moved_to_host(around, call.args[0]):
                    return True
    return False


def _saves(node: ast.AST, around: ast.AST) -> Iterator[tuple[ast.AST, ast.Call]]:
    """The calls of `torch.save`, each with the function that it stands in."""
    if isinstance(node, ast.Call) and dotted(node.func) == "torch.save":
        yield around, node
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        around = node
    for child in ast.iter_child_nodes(node):
        yield from _saves(child, around)


def _is_moved_to_host(around: ast.AST, saved: ast.expr) -> bool:
    """`{k: v.cpu() for k, v in state.items()}`, a name to which or into which the same function assigns such things
    only, or the state of a model that it moved last: `model = model.cpu()`. State dicts that FSDP was asked to put on
    the host lie there.
    """
    if _asks_for_host(around):
        return True
    assigned = _assigned(around)
    values = [saved]
    if isinstance(saved, ast.Name):
        values = [value for target, value in assigned if isinstance(target, ast.Name) and target.id == saved.id]
        if values and all(_is_empty(value) for value in values):
            values = [value for target, value in assigned if _root(target) == saved.id and not _is_empty(value)]
    if values and all(_holds_moved(around, value, assigned) for value in values):
        return True
    return _last_moves_are_to_host(around, saved)


def _assigned(around: ast.AST) -> list[tuple[ast.expr, ast.expr]]:
    assignments = (node for node in ast.walk(around) if isinstance(node, ast.Assign))
    return [(target, assignment.value) for assignment in assignments for target in assignment.targets]


def _holds_moved(around: ast.AST, saved: ast.expr, assigned: list[tuple[ast.expr, ast.expr]]) -> bool:
    """Is it moved? `{"epoch": epoch, "model": state}` is where `state` was, and no state beside it was not."""
    if not isinstance(saved, ast.Dict) or not all(saved.keys):
        return _moves_to_host(saved)
    named = {entry.id for entry in saved.values if isinstance(entry, ast.Name)}
    parts = [entry for entry in saved.values if not isinstance(entry, ast.Name)]
    parts += [value for target, value in assigned if _root(target) in named]
    for node in ast.walk(around):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="update"), args=[new]) if name in named:
                parts.append(new)
    moved = [part for part in parts if _moves_to_host(part)]
    return bool(moved) and not any(_is_state(part) for part in parts if part not in moved)


def _is_state(value: ast.expr) -> bool:
    return any(isinstance(node, ast.Call) and dotted(node.func).endswith("state_dict") for node in ast.walk(value))


def _asks_for_host(around: ast.AST) -> bool:
    """`FullStateDictConfig(offload_to_cpu=True)`, `StateDictOptions(cpu_offload=True)`, also under a condition."""
    keywords = (node for node in ast.walk(around) if isinstance(node, ast.keyword))
    return any(
        keyword.arg in _ON_HOST and not (isinstance(keyword.value, ast.Constant) and not keyword.value.value)
        for keyword in keywords
    )


def _root(target: ast.expr) -> str:
    """The name that is assigned to, or in what it holds: `found[key][name] = value`."""
    while isinstance(target, ast.Subscript):
        target = target.value
    return target.id if isinstance(target, ast.Name) else ""


def _is_empty(value: ast.expr) -> bool:
    match value:
        case ast.Dict(values=[]) | ast.List(elts=[]):
            return True
    return False


def _last_moves_are_to_host(around: ast.AST, saved: ast.expr) -> bool:
    """Of all whose `state_dict()` is saved: is the last move that is written before that one to the host?"""
    owners = {
        owner
        for node in ast.walk(saved)
        if isinstance(node, ast.Call) and (path := dotted(node.func)).endswith(".state_dict")
        for owner in [path.removesuffix(".state_dict")]
    }
    return bool(owners) and all(_last_move(around, owner, saved.lineno) == "cpu" for owner in owners)


def _last_move(around: ast.AST, owner: str, line: int) -> str:
    moves = [
        (node.lineno, "cpu" if _is_move(node) else "")
        for node in ast.walk(around)
        if isinstance(node, ast.Call)
        and node.lineno < line
        and dotted(node.func) in (f"{owner}.cpu", f"{owner}.cuda", f"{owner}.to")
    ]
    return max(moves, default=(0, ""))[1]


def _moves_to_host(value: ast.expr) -> bool:
    return any(isinstance(node, ast.Call) and _is_move(node) for node in ast.walk(value))


def _is_move(node: ast.Call) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr="cpu"), args=[]):
            return True
        case ast.Call(func=ast.Attribute(attr="to"), args=[ast.Constant(value="cpu")]):
            return True
    return False
