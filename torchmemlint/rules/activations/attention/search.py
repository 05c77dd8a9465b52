"""The attentions of a file: what is computed in one function, and its weights used for the weighted sum only."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from torchmemlint.flow.program import ClassInfo, Program
from torchmemlint.rules.activations.attention import judging
from torchmemlint.rules.activations.attention.reading import Reader
from torchmemlint.rules.activations.attention.stages import Attention, Definition, Kind, Names, Stage, Step

_FUSED = (  # a file that names one of them has chosen already
    "scaled_dot_product_attention",
    "memory_efficient_attention",
    "flash_attn",
    "flex_attention",
    "xformers",
    "sdpa",
)
_HOOKS = ("register_forward_hook", "register_full_backward_hook", "register_forward_pre_hook", "register_hook")
_PRODUCTS = ("@", "matmul", "bmm", "einsum")


def find(program: Program) -> Iterator[Attention]:
    """The attentions of a file that could be computed by the fused function, in order."""
    text = program.source.text
    if "oftmax" not in text or not any(word in text for word in _PRODUCTS):
        return
    if any(word in text for word in (*_FUSED, *_HOOKS)):
        return
    for piece in program.source.pieces:
        if piece.outline is None or "oftmax" not in piece.text:
            continue
        for function, cls in _functions(piece.outline, program):
            first = function.lineno - piece.first_row
            lines = piece.lines[first : (function.end_lineno or first) - piece.first_row + 1]
            if any(word in line for line in lines for word in _PRODUCTS):
                yield from Search(program, cls, function).run()


def _functions(
    node: ast.AST, program: Program, cls: ClassInfo | None = None
) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, ClassInfo | None]]:
    for child in [node] if isinstance(node, ast.stmt) else []:
        pending: list[tuple[ast.AST, ClassInfo | None]] = [(child, cls)]
        while pending:
            current, owner = pending.pop(0)
            match current:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    yield current, owner
                    pending += [(inner, owner) for inner in current.body]
                case ast.ClassDef(name=name):
                    known = program.find_class(name) if current is node else None
                    pending += [(inner, known) for inner in current.body]
                case ast.If() | ast.Try() | ast.With():
                    pending += [
                        (inner, owner) for inner in ast.iter_child_nodes(current) if isinstance(inner, ast.stmt)
                    ]


class Search(Reader):
    """One walk through a function, statement by statement."""

    def run(self) -> Iterator[Attention]:
        """Those of which, at the end of the function, nothing else has been read."""
        self._body(self.function.body)
        for found in self.found:
            if found.weights.is_used_once() and judging.is_attention(found, self.operations):
                yield found

    def _body(self, statements: Sequence[ast.stmt]) -> bool:
        """Walk a block; does it end the function or the round of a loop?"""
        for statement in statements:
            self.statement = statement
            if self._execute(statement):
                return True
        return False

    def _execute(self, node: ast.stmt) -> bool:
        match node:
            case ast.Assign(targets=[target], value=value):
                self._assign(target, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._assign(target, value)
            case ast.AugAssign(target=ast.Name(id=name), op=op, value=value) if name in self.stages:
                left = ast.copy_location(ast.Name(name, ast.Load()), node.target)
                whole = ast.copy_location(ast.BinOp(left, op, value), node)
                self.bind(name, self.combined(whole, left, op, value), None)
            case ast.AugAssign(target=target, value=value):
                self.escape(self.read(value))
                self._store(target)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)) as call) if (
                method.endswith("_") and name in self.stages
            ):
                self.bind(name, self.read(call), None)
            case ast.Expr(value=value):
                self.escape(self.read(value))
            case ast.Return() | ast.Raise():
                self._inside(node)
                return True
            case ast.Assert():
                self._inside(node)
            case ast.Continue() | ast.Break():
                return True
            case ast.If(test=test, body=body, orelse=orelse):
                self.escape(self.read(test))
                return self._branches(node, [body, orelse])
            case ast.Match(subject=subject, cases=cases):
                self.escape(self.read(subject))
                self._branches(node, [case.body for case in cases] + [[]])
            case ast.For() | ast.AsyncFor() | ast.While():
                self._loop(node)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    self.escape(self.read(item.context_expr))
                    if item.optional_vars is not None:
                        self._store(item.optional_vars)
                return self._body(node.body)
            case ast.Try():
                self._branches(node, [[*node.body, *node.orelse], *(h.body for h in node.handlers)])
                return self._body(node.finalbody)
            case ast.Delete() | ast.Pass() | ast.Import() | ast.ImportFrom() | ast.Global() | ast.Nonlocal():
                pass
            case _:
                self.escape_all(node)
        return False

    def _inside(self, node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.escape(self.read(child))

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        match target, value:
            case ast.Name(id=name), _:
                self.bind(name, self.read(value), Definition(value, None, 1, self.names))
            case ast.Tuple(elts=targets), ast.Tuple(elts=values) if len(targets) == len(values):
                before = self.names
                read = [self.read(item) for item in values]
                for place, stage, item in zip(targets, read, values, strict=True):
                    if isinstance(place, ast.Name):
                        self.bind(place.id, stage, Definition(item, None, 1, before))
                    else:
                        self.escape(stage)
                        self._store(place)
            case _:
                self.escape(self.read(value))
                self._store(target, value)

    def _store(self, target: ast.expr, value: ast.expr | None = None) -> None:
        """An assignment to something else than a name, or of parts of a value."""
        match target:
            case ast.Name(id=name):
                self.bind(name, None, None)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                starred = any(isinstance(element, ast.Starred) for element in elements)
                before = self.names
                for index, element in enumerate(elements):
                    if isinstance(element, ast.Name) and value is not None and not starred:
                        self.bind(element.id, None, Definition(value, index, len(elements), before))
                    else:
                        self._store(element)
            case ast.Starred(value=inner):
                self._store(inner)
            case _:
                self._inside(target)  # `scores[mask] = 0`: the scores are changed in a way that is not followed

    def _branches(self, node: ast.AST, bodies: list[list[ast.stmt]]) -> bool:
        """Ways of which one is gone; do all of them end?"""
        stages, names, path = self.stages, self.names, self.path
        ends: list[tuple[dict[str, Stage], Names]] = []
        for way, body in enumerate(bodies):
            self.stages, self.names, self.path = dict(stages), names, (*path, (node, way))
            if not self._body(body):
                ends.append((self.stages, self.names))
        self.path = path
        self.statement = node if isinstance(node, ast.stmt) else self.statement
        if not ends:
            self.stages, self.names = stages, names
            return True
        self.stages, self.names = self._joined([end[0] for end in ends]), _same_names([end[1] for end in ends])
        return False

    def _joined(self, ends: list[dict[str, Stage]]) -> dict[str, Stage]:
        found: dict[str, Stage] = {}
        for name in sorted({name for end in ends for name in end}):
            each = [end.get(name) for end in ends]
            stages = list(dict.fromkeys(stage for stage in each if stage is not None))
            if len(stages) == 1 and None not in each:
                found[name] = stages[0]
                continue
            first = stages[0]
            mixed = None in each or any(
                (stage.weights, stage.swapped, stage.mixed) != (first.weights, first.swapped, False) for stage in stages
            )
            found[name] = Stage(
                Step(Kind.CHOICE, first.step.node),
                self.path,
                self.statement,
                first.weights,
                first.product,
                tuple(stages),
                first.swapped,
                mixed,
            )
        return found

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While) -> None:
        self.escape(self.read(node.test if isinstance(node, ast.While) else node.iter))
        stages, path = dict(self.stages), self.path
        assigned: set[str] = set()
        exposed: set[str] = set()
        self.loops.append((assigned, exposed))
        self.path = (*path, (node, 0))
        if not isinstance(node, ast.While):
            self._store(node.target)
        changed = {
            inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)
        }
        self.names = {**self.names, **dict.fromkeys(changed - assigned, None)}
        self._body(node.body)
        for name in exposed:
            self.escape(self.stages.get(name))
        self.loops.pop()
        self.path = path
        self.stages = self._joined([stages, self.stages])
        self.names = {**self.names, **dict.fromkeys(changed, None)}
        self._body(node.orelse)


def _same_names(ends: list[Names]) -> Names:
    first = ends[0]
    if all(end is first for end in ends):
        return first
    names = {name for end in ends for name in end}
    return {name: first.get(name) if all(end.get(name) is first.get(name) for end in ends) else None for name in names}
