"""Rewritings of single statements and names."""

from __future__ import annotations

import ast

from .tracking import each_file, replaces
from .trees import after_docstring, after_imports, blocks, expression, module_names, names, parsed


@each_file
def same(tree: ast.Module) -> bool:
    """Only printed anew: the control."""
    return True


@each_file
def rename(tree: ast.Module) -> bool:
    """Local names and parameters of functions, but none that another place could mean."""
    fixed = module_names(tree) | {"self", "cls"}
    for node in ast.walk(tree):
        match node:
            case ast.keyword(arg=str(name)):
                fixed.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                fixed.add(name)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                fixed.add(name)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                fixed |= {(alias.asname or alias.name).split(".")[0] for alias in aliases}
            case ast.ClassDef(name=name, body=body):
                fixed |= {name, *names((s for s in body if not isinstance(s, ast.FunctionDef)), ast.Store)}
                methods = [s for s in body if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef))]
                fixed |= {arg.arg for method in methods for arg in ast.walk(method.args) if isinstance(arg, ast.arg)}
    parameters = {arg.arg for arg in ast.walk(tree) if isinstance(arg, ast.arg)}
    new = {old: f"q{i}" for i, old in enumerate(sorted((names([tree], ast.Store) | parameters) - fixed))}
    for node in ast.walk(tree):
        match node:
            case ast.Name():
                node.id = new.get(node.id, node.id)
            case ast.arg():
                node.arg = new.get(node.arg, node.arg)
            case ast.Nonlocal() | ast.Global():
                node.names = [new.get(name, name) for name in node.names]
    return bool(new)


@each_file
def temporary(tree: ast.Module) -> bool:
    """What is added or kept gets a name first."""
    changed = False
    for owner, block in blocks(tree):
        for statement in list(block) if not isinstance(owner, ast.ClassDef) else ():
            held = ast.Name("held", ast.Load())
            match statement:
                case ast.AugAssign(value=value) if not isinstance(value, (ast.List, ast.Constant)):
                    statement.value = held
                case ast.Expr(ast.Call(func=ast.Attribute(attr="append" | "update" | "add"), args=[value, *_]) as call):
                    if isinstance(value, ast.Starred):
                        continue
                    call.args[0] = held
                case ast.Assign(
                    targets=[ast.Name() | ast.Attribute() | ast.Subscript()], value=ast.BinOp(right=value) as sum_
                ):
                    sum_.right = held
                case _:
                    continue
            bound = ast.Assign([ast.Name("held", ast.Store())], value)
            block.insert(block.index(statement), *replaces(statement, bound))
            changed = True
    return changed


@each_file
def alias_of_self(tree: ast.Module) -> bool:
    """Methods that call `self` by another name."""
    changed = False
    for owner in ast.walk(tree):
        for method in owner.body if isinstance(owner, ast.ClassDef) else ():
            if not isinstance(method, ast.FunctionDef) or method.name == "__init__":
                continue
            if [arg.arg for arg in method.args.args[:1]] != ["self"] or any(
                isinstance(node, ast.ClassDef) for node in ast.walk(method)
            ):
                continue
            used = [node for node in ast.walk(method) if isinstance(node, ast.Name) and node.id == "self"]
            for node in used:
                node.id = "me"
            if used:
                method.body.insert(after_docstring(method.body), *parsed("me = self"))
                changed = True
    return changed


@each_file
def for_to_while(tree: ast.Module) -> bool:
    """`for` to `while` with `next`."""
    count = 0
    for _, block in blocks(tree):
        for statement in list(block):
            if not isinstance(statement, ast.For) or statement.orelse:
                continue
            made, loop = parsed(
                f"steps{count} = iter(0)\n"
                f"while True:\n    try:\n        x = next(steps{count})\n    except StopIteration:\n        break\n"
            )
            match made, loop:
                case ast.Assign(value=ast.Call() as call), ast.While(body=[ast.Try(body=[ast.Assign() as taken])]):
                    call.args = [statement.iter]
                    taken.targets = [statement.target]
                    loop.body += statement.body
                    at = block.index(statement)
                    block[at : at + 1] = [made, *replaces(statement, loop)]
                    replaces(statement, taken, made)
                    count += 1
    return count > 0


@each_file
def plus_equals(tree: ast.Module) -> bool:
    """`a += b` to `a = a + b`, and back; lists are left alone, which others may share."""
    changed = False
    for _, block in blocks(tree):
        for i, statement in enumerate(block):
            match statement:
                case ast.AugAssign(target=target, op=ast.Add(), value=value) if not _is_sequence(value):
                    load = expression(ast.unparse(target))
                    new: ast.stmt = ast.Assign([target], ast.BinOp(load, ast.Add(), value))
                case ast.Assign(
                    targets=[(ast.Name() | ast.Attribute() | ast.Subscript()) as target],
                    value=ast.BinOp(left=left, op=ast.Add(), right=value),
                ) if ast.unparse(target) == ast.unparse(left) and not _is_sequence(value):
                    new = ast.AugAssign(target, ast.Add(), value)
                case _:
                    continue
            block[i] = replaces(statement, new)[0]
            changed = True
    return changed


def _is_sequence(value: ast.expr) -> bool:
    return isinstance(value, (ast.List, ast.Tuple, ast.ListComp, ast.Starred))


@each_file
def list_to_map(tree: ast.Module) -> bool:
    """`[f(x) for x in xs]` to `list(map(...))`, and a `for` over a name to one over a `map`."""
    change = _ToMap()
    change.visit(tree)
    return change.changed


class _ToMap(ast.NodeTransformer):
    changed = False

    def visit_ListComp(self, node: ast.ListComp) -> ast.expr:
        self.generic_visit(node)
        generators = node.generators
        if len(generators) > 1 or generators[0].ifs or generators[0].is_async:
            return node
        if any(isinstance(part, (ast.NamedExpr, ast.Await, ast.Starred)) for part in ast.walk(node)):
            return node
        target = generators[0].target
        if not isinstance(target, (ast.Name, ast.Tuple)) or not all(
            isinstance(part, ast.Name) for part in getattr(target, "elts", [])
        ):
            return node
        self.changed = True
        star = "*" if isinstance(target, ast.Tuple) else ""
        parameters = ast.unparse(target).strip("()")
        inner = f"(lambda {parameters}: {ast.unparse(node.elt)})({star}item)"
        return expression(f"list(map(lambda item: {inner}, {ast.unparse(generators[0].iter)}))")

    def visit_For(self, node: ast.For) -> ast.For:
        self.generic_visit(node)
        if isinstance(node.iter, ast.Name):
            self.changed = True
            node.iter = expression(f"map(lambda batch: batch, {node.iter.id})")
        return node


@each_file
def unused_function(tree: ast.Module) -> bool:
    """A function that nobody calls, before all others."""
    new = parsed(
        "def not_called(net, batches):\n"
        "    seen = 0\n"
        "    for x, y in batches:\n"
        "        seen = seen + net(x).sum().item()\n"
        "    return seen"
    )
    at = after_imports(tree)
    tree.body[at:at] = new
    return True
