"""The places of a file that mention a function's name.

Works on the standard parser's tree alone: it is asked of files that are not analysed.
"""

from __future__ import annotations

import ast
import itertools
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from torchmemlint.findings import Lead
from torchmemlint.flow.program import ClassInfo, Function, Program
from torchmemlint.immutable import immutable
from torchmemlint.knowledge import behaviour
from torchmemlint.syntax.outline import dotted, imports, parts
from torchmemlint.syntax.source_module import Piece


@dataclass(frozen=True)
class CallSite:
    """A mention of a function's name."""

    node: ast.Name | ast.Attribute
    program: Program
    function: Function | None  # it stands in; None: the module level
    syntax: ast.FunctionDef | ast.AsyncFunctionDef | None  # of that function
    called: bool  # or handed on as a value
    call: ast.Call | None = None  # by which it is called

    @cached_property
    def imported(self) -> Mapping[str, str]:
        """What the function itself imports."""
        if self.syntax is None:
            return {}
        statements = [n for n in ast.walk(self.syntax) if isinstance(n, ast.Import | ast.ImportFrom)]
        return dict(imports(list(statements)))

    @cached_property
    def bound(self) -> frozenset[str]:
        """Names that are parameters or variables of the function, and so hide those of the module."""
        if self.syntax is None:
            return frozenset()
        names = {n.arg for n in ast.walk(self.syntax.args) if isinstance(n, ast.arg)}
        names |= {n.id for n in ast.walk(self.syntax) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        return frozenset(names - self.imported.keys())


def find(program: Program, name: str) -> list[CallSite]:
    """All mentions of a name in the file, but for definitions and imports."""
    scan = _Scan(program, name)
    for piece in program.source.pieces:
        last = piece.first_row + len(piece.lines) - 1
        if piece.outline is not None and scan.is_named(piece.first_row, last):
            scan.visit(piece.outline, _Place())
    return scan.found


@immutable()
class _Place:
    function: Function | None = None
    syntax: ast.FunctionDef | ast.AsyncFunctionDef | None = None
    cls: ClassInfo | None = None  # whose body it is
    hidden: bool = False  # in a function or class that the program does not list


@dataclass(slots=True)
class _Scan:
    program: Program
    name: str
    found: list[CallSite] = field(default_factory=list)
    rows: list[int] = field(init=False)  # of the file in which the name stands, or what holds it

    def __post_init__(self) -> None:
        self.rows = [row for row, text in enumerate(self.program.source.rows, 1) if self.name in text]

    def is_named(self, first: int, last: int) -> bool:
        """Does the name stand anywhere in these rows?"""
        after = bisect_left(self.rows, first)
        return after < len(self.rows) and self.rows[after] <= last

    def visit(self, node: ast.AST, place: _Place) -> None:
        """Look at a node and all inside it, in order."""
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._function(node, place)
            case ast.ClassDef():
                self._class(node, place)
            case ast.Call(func=ast.Name(id=self.name) | ast.Attribute(attr=self.name) as func):
                self._found(func, place, call=node)
                for child in (func, *node.args, *node.keywords):
                    self._inside(child, place)
            case ast.Name(id=self.name, ctx=ast.Load()) | ast.Attribute(attr=self.name, ctx=ast.Load()):
                self._found(node, place)
                self._inside(node, place)
            case _:
                self._inside(node, place)

    def _inside(self, node: ast.AST, place: _Place) -> None:
        for child in parts(node):
            self.visit(child, place)

    def _found(self, node: ast.Name | ast.Attribute, place: _Place, call: ast.Call | None = None) -> None:
        self.found.append(CallSite(node, self.program, place.function, place.syntax, call is not None, call))

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, place: _Place) -> None:
        first = Piece.row_of(node)
        if not self.is_named(first, node.end_lineno or first):
            return
        for decorator in node.decorator_list:
            self.visit(decorator, place)
        inner = _Place(place.function, place.syntax, hidden=place.hidden)
        if place.function is None and not place.hidden:
            function = place.cls.methods.get(node.name) if place.cls else self.program.find_function(node.name)
            inner = _Place(function, node, hidden=function is None)
        for statement in node.body:
            self.visit(statement, inner)

    def _class(self, node: ast.ClassDef, place: _Place) -> None:
        listed = place.function is None and place.cls is None and not place.hidden
        cls = self.program.find_class(node.name) if listed else None
        inside = _Place(place.function, place.syntax, cls, hidden=cls is None)
        for statement in node.body:
            self.visit(statement, inside)


# -- the class of an object ------------------------------------------------------------------------------------------


def class_of(owner: ast.expr, site: CallSite) -> ClassInfo | None:
    """The project's class of what a method is called on; None where it cannot be told."""
    program = site.program
    match owner:
        case ast.Name(id="self" | "cls") if site.function is not None:
            return site.function.cls
        case ast.Call(func=ast.Name(id="super")):
            ancestors = site.function.cls.ancestors() if site.function is not None and site.function.cls else iter(())
            return next(itertools.islice(ancestors, 1, None), None)
        case ast.Call(func=func):
            return _class_named(dotted(func), site)
        case ast.Name(id=name):
            statements: list[ast.AST] = [site.syntax] if site.syntax is not None else []
            found = _class_named(name, site) if name not in site.bound else None
            if found is None and site.syntax is None:
                statements = [piece.outline for piece in program.source.pieces if piece.outline and not piece.name]
            return found or _made(name, statements, site)
        case ast.Attribute(value=ast.Name(id="self"), attr=_) if site.function is not None and site.function.cls:
            methods = (method for cls in site.function.cls.ancestors() for method in cls.methods.values())
            return _of_attribute(dotted(owner), methods, site)
        case ast.Attribute():
            return _class_named(dotted(owner), site)
    return None


def _class_named(path: str, site: CallSite, program: Program | None = None) -> ClassInfo | None:
    """The class that a name stands for at a call, or in another file (`program`)."""
    if not path:
        return None
    first, dot, rest = path.partition(".")
    qualified = site.imported.get(first, "") if program is None else ""
    program = program or site.program
    qualified = qualified + dot + rest if qualified else program.qualify(path)
    found = program.find_class(path) or program.resolve(qualified, Lead.CALLER)
    return found if isinstance(found, ClassInfo) else None


def _of_attribute(path: str, methods: Iterable[Function], site: CallSite) -> ClassInfo | None:
    """The class of which the methods of an object's class, perhaps in other files, make an attribute."""
    found: set[ClassInfo] = set()
    for method in methods:
        program = method.program if method.program is not site.program else None
        for value in _given(path, method.syntax) if method.syntax is not None else ():
            if isinstance(value, ast.Constant) and value.value is None:
                continue  # not made yet
            cls = _class_named(dotted(value.func) if isinstance(value, ast.Call) else annotated(value), site, program)
            if cls is None:
                return None
            found.add(cls)
    return found.pop() if len(found) == 1 else None


def _made(path: str, within: list[ast.AST], site: CallSite) -> ClassInfo | None:
    """The class of which a variable or attribute is made, or as which it is annotated; None if of several."""
    found: set[ClassInfo] = set()
    for value in (value for root in within for value in _given(path, root)):
        cls = _class_named(dotted(value.func) if isinstance(value, ast.Call) else annotated(value), site)
        if cls is None:
            return None
        found.add(cls)
    return found.pop() if len(found) == 1 else None


def _given(path: str, root: ast.AST) -> Iterator[ast.expr]:
    """The constructors and annotations of a variable, parameter or attribute; names lead to their annotations."""
    for node in ast.walk(root):
        match node:
            case ast.Assign(targets=targets, value=value) if any(dotted(target) == path for target in targets):
                value = itself(value)
                if dotted(value) != path:  # `model = model.cuda()`
                    yield from _unfolded(value, root)
            case ast.AnnAssign(target=target, annotation=annotation) if dotted(target) == path:
                yield annotation
            case ast.arg(arg=name, annotation=ast.expr() as annotation) if name == path:
                yield annotation
            case ast.withitem(context_expr=value, optional_vars=ast.expr() as target) if dotted(target) == path:
                yield value


def itself(value: ast.expr) -> ast.expr:
    """The object of which methods that give it back are called: `Net()` of `Net().to(device).eval()`."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        if value.func.attr not in behaviour.RETURNS_ITSELF | {"train", "eval", "requires_grad_"}:
            break
        value = value.func.value
    return value


def _unfolded(value: ast.expr, root: ast.AST) -> Iterator[ast.expr]:
    if isinstance(value, ast.Name):
        annotations = [n.annotation for n in ast.walk(root) if isinstance(n, ast.arg) and n.arg == value.id]
        yield from (annotation for annotation in annotations if annotation is not None)
        if annotations != [None] and annotations:
            return
    yield value


def annotated(annotation: ast.expr) -> str:
    """The class that an annotation names: `Trainer`, `"Trainer"`, `Trainer | None`, `Optional[Trainer]`."""
    match annotation:
        case ast.Constant(value=str(text)):
            return text if text.replace(".", "").isidentifier() else ""
        case ast.BinOp(left=left, op=ast.BitOr(), right=ast.Constant(value=None)):
            return dotted(left)
        case ast.Subscript(value=ast.Name(id="Optional") | ast.Attribute(attr="Optional"), slice=inner):
            return dotted(inner)
    return dotted(annotation)
