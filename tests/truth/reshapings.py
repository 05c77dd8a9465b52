"""Rewritings that move code: into functions, out of them, to another file; and calls that name their arguments."""

from __future__ import annotations

import ast
import builtins
import copy
from collections.abc import Iterator

from .tracking import Trees, each_file, replaces, rewriting, track, tracked_by
from .trees import (
    Function,
    after_imports,
    blocks,
    contains,
    imported,
    imports_of,
    module_names,
    names,
    parsed,
)


@each_file
def extract_function(tree: ast.Module) -> bool:
    """The first half of a loop's body becomes a function."""
    for owner in [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name != "forward"]:
        for loop in [node for node in ast.walk(owner) if isinstance(node, ast.For)]:
            part = _extractable(owner, loop)
            if part:
                _extract(tree, owner, loop, part)
                return True
    return False


def _extractable(owner: ast.FunctionDef, loop: ast.For) -> list[ast.stmt]:
    """The statements at the top of the loop that a function of their own can have."""
    declared = {name for n in ast.walk(owner) if isinstance(n, (ast.Nonlocal, ast.Global)) for name in n.names}
    part: list[ast.stmt] = []
    for statement in loop.body:
        if not isinstance(statement, (ast.Assign, ast.Expr)) or names([statement], ast.Store) & declared:
            break
        part.append(statement)
    part = part[: max(1, len(part) // 2)]
    if len(part) == len(loop.body) or not contains(part, ast.Call):
        return []
    if contains(part, ast.Yield, ast.YieldFrom, ast.Await, ast.Lambda, ast.NamedExpr) or "super" in names(
        part, ast.Load
    ):
        return []
    return part


def _extract(tree: ast.Module, owner: ast.FunctionDef, loop: ast.For, part: list[ast.stmt]) -> None:
    inside = {
        name
        for statement in part
        for node in ast.walk(statement)
        if isinstance(node, ast.comprehension)
        for name in names([node.target], ast.Store)
    }
    outside = module_names(tree) | inside
    local = names([owner], ast.Store) | {arg.arg for arg in ast.walk(owner.args) if isinstance(arg, ast.arg)}
    outside -= local - inside
    free: list[str] = []
    defined: set[str] = set()
    for statement in part:
        free += sorted(names([statement], ast.Load) - defined - outside - set(free))
        defined |= names([statement], ast.Store)
    within = {id(node) for statement in part for node in ast.walk(statement)}
    used = {
        node.id
        for node in ast.walk(owner)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in within
    }
    used |= {*free}  # by the next iteration
    results = ", ".join(sorted((names(part, ast.Store) - inside) & used))
    call = f"extracted({', '.join(free)})"
    [new] = parsed(f"def extracted({', '.join(free)}):\n    pass")
    match new:
        case ast.FunctionDef():
            new.body = [*part, *([ast.Return(ast.parse(results, mode="eval").body)] if results else [])]
    [calling] = loop.body[: len(part)] = parsed(f"{results} = {call}" if results else call)
    track(calling, *(mark for statement in part for mark in tracked_by(statement)))
    top = next(i for i, statement in enumerate(tree.body) if any(node is owner for node in ast.walk(statement)))
    tree.body.insert(top, new)


@each_file
def inline_function(tree: ast.Module) -> bool:
    """All calls of a simple function of the file become its body.

    Not some of them: who else calls a function decides where it is reported what its passes record for nothing.
    """
    functions = {one.name: one for one in tree.body if isinstance(one, ast.FunctionDef) and _is_simple(one)}
    for name, function in functions.items():
        calls = [
            (block, statement)
            for owner, block in blocks(tree)
            for statement in block
            if owner is not function and _calls(statement, function)
        ]
        uses = sum(isinstance(node, ast.Name) and node.id == name for node in ast.walk(tree))
        if not calls or uses > len(calls):
            continue
        for block, statement in calls:
            at = block.index(statement)
            match statement:
                case ast.Assign(value=ast.Call(args=args)):
                    block[at : at + 1] = _inlined(statement, copy.deepcopy(function), args)
            replaces(function, statement)
        tree.body.remove(function)
        return True
    return False


def _calls(statement: ast.stmt, function: ast.FunctionDef) -> bool:
    """Does a statement bind what the function gives, each argument in its place?"""
    match statement:
        case ast.Assign(value=ast.Call(func=ast.Name(id=name), args=args, keywords=[])) if name == function.name:
            return len(args) == len(function.args.args) and not contains(args, ast.Starred)
    return False


def _is_simple(function: ast.FunctionDef) -> bool:
    arguments = function.args
    return (
        not function.decorator_list
        and isinstance(function.body[-1], ast.Return)
        and function.body[-1].value is not None
        and bool(arguments.args)
        and not (arguments.vararg or arguments.kwarg or arguments.defaults or arguments.kwonlyargs)
        and not contains(function.body, ast.FunctionDef, ast.Yield, ast.YieldFrom, ast.Global, ast.Lambda)
        and all(isinstance(statement, (ast.Assign, ast.Expr)) for statement in function.body[:-1])
    )


def _inlined(call: ast.Assign, function: ast.FunctionDef, arguments: list[ast.expr]) -> list[ast.stmt]:
    """The function's body in the place of the call."""
    parameters = [arg.arg for arg in function.args.args]
    local = names(function.body, ast.Store) | set(parameters)
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id in local:
            node.id = f"in_{node.id}"
    bound: list[ast.stmt] = [
        ast.Assign([ast.Name(f"in_{name}", ast.Store())], value)
        for name, value in zip(parameters, arguments, strict=True)
    ]
    *body, last = function.body
    match last:
        case ast.Return(value=ast.expr() as value):
            call.value = value
    replaces(last, call)
    return [*replaces(call, *bound, *body), call]


@rewriting
def class_to_other_file(trees: Trees) -> bool:
    """Classes that need nothing of their file move to a file of their own."""
    for tree in list(trees.values()):
        local = _local_imports(tree, {file.removesuffix(".py") for file in trees})
        if moved := list(_movable(tree, local)):
            installed = [copy.deepcopy(one) for one in imports_of(tree) if one not in local]
            tree.body = [statement for statement in tree.body if statement not in moved]
            tree.body[after_imports(tree) : after_imports(tree)] = parsed(
                f"from moved import {', '.join(one.name for one in moved)}"
            )
            trees["moved.py"] = ast.Module([*installed, *moved], [])
            return True
    return False


def _local_imports(tree: ast.Module, files: set[str]) -> list[ast.Import | ast.ImportFrom]:
    """What a file imports from the program's other files."""
    return [
        one
        for one in imports_of(tree)
        if getattr(one, "level", 0) or (getattr(one, "module", None) or one.names[0].name).split(".")[0] in files
    ]


def _movable(tree: ast.Module, local: list[ast.Import | ast.ImportFrom]) -> Iterator[ast.ClassDef]:
    """The classes at the top of a file that use nothing but what is installed, and each other."""
    installed = imported(one for one in imports_of(tree) if one not in local)
    own = module_names(tree) - set(dir(builtins)) - installed
    known: set[str] = set()
    for statement in tree.body:
        if isinstance(statement, ast.ClassDef) and names([statement], ast.Load) & own <= known | {statement.name}:
            known.add(statement.name)
            yield statement


@each_file
def keyword_arguments(tree: ast.Module) -> bool:
    """Positional arguments of the file's own functions, constructors and methods by name."""
    changed = False
    for call, parameters in _own_calls(tree):
        if call.args and not contains(call.args, ast.Starred) and len(call.args) <= len(parameters):
            named = [ast.keyword(name, value) for name, value in zip(parameters, call.args, strict=False)]
            call.args, call.keywords = [], [*named, *call.keywords]
            changed = True
    return changed


@each_file
def positional_arguments(tree: ast.Module) -> bool:
    """Named arguments of the file's own functions, constructors and methods by position."""
    changed = False
    for call, parameters in _own_calls(tree):
        rest = parameters[len(call.args) :]
        while call.keywords and rest and call.keywords[0].arg == rest[0]:
            call.args.append(call.keywords.pop(0).value)
            rest = rest[1:]
            changed = True
    return changed


_ANYBODYS = ("forward", "update", "__call__", "add", "append", "run", "fit", "step")  # methods that other classes have


def _own_calls(tree: ast.Module) -> list[tuple[ast.Call, list[str]]]:
    """Calls of what the file defines, with the names of its parameters."""
    functions = {one.name: _parameters(one) for one in tree.body if isinstance(one, ast.FunctionDef)}
    methods: dict[str, list[str] | None] = {}
    for owner in (one for one in tree.body if isinstance(one, ast.ClassDef)):
        for method in (one for one in owner.body if isinstance(one, ast.FunctionDef)):
            parameters = _parameters(method)
            if method.name == "__init__":
                functions[owner.name] = parameters[1:] if parameters else None
            elif method.name not in _ANYBODYS:
                known = methods.get(method.name, parameters[1:] if parameters else None)
                methods[method.name] = known if parameters and known == parameters[1:] else None
    calls = []
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name)):
                found = functions.get(name)
            case ast.Call(func=ast.Attribute(attr=name)):
                found = methods.get(name)
            case _:
                continue
        if found:
            calls.append((node, found))
    return calls


def _parameters(function: Function) -> list[str] | None:
    """The names that arguments can be given by; None if they cannot all be told."""
    arguments = function.args
    if arguments.vararg or arguments.kwarg or arguments.posonlyargs or function.decorator_list:
        return None
    return [arg.arg for arg in arguments.args]
