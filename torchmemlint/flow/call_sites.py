"""The places of a file that mention a function's name, each with the gradient mode that its surroundings set.

Works on the standard parser's tree alone: it is asked of files that are not analysed.
"""

from __future__ import annotations

import ast
import itertools
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from functools import cached_property

from torchmemlint.findings import Lead
from torchmemlint.flow import gradient_modes
from torchmemlint.flow.program import ClassInfo, Function, Program, outlined_name
from torchmemlint.flow.values import Mode
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
    mode: Mode | None  # None: that in which the function is called
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
        if piece.outline is not None and (scan.is_named(piece.first_row, last) or _may_set_mode(piece)):
            scan.visit(piece.outline, _Place(scan.module))
    return scan.found


def _may_set_mode(piece: Piece) -> bool:
    """May a piece set the gradient mode for those after it? A table or an import does not."""
    return piece.kind == "code" and not isinstance(piece.outline, _PASSIVE)


_PASSIVE = (ast.Assign, ast.AnnAssign, ast.Import, ast.ImportFrom)


@dataclass(slots=True)
class _Frame:
    """The gradient mode as it changes along the statements of a function; None: as it was entered."""

    mode: Mode | None


@immutable()
class _Place:
    frame: _Frame
    function: Function | None = None
    syntax: ast.FunctionDef | ast.AsyncFunctionDef | None = None
    cls: ClassInfo | None = None  # whose body it is
    hidden: bool = False  # in a function or class that the program does not list


@dataclass(slots=True)
class _Scan:
    program: Program
    name: str
    within: bool = False  # one function, for the mentions of another that this defines
    found: list[CallSite] = field(default_factory=list)
    module: _Frame = field(default_factory=lambda: _Frame(Mode.ON))
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
            case ast.With() | ast.AsyncWith():
                self._with(node, place)
            case ast.If() | ast.For() | ast.AsyncFor() | ast.While() | ast.Try():
                self._at_times(node, place)
            case ast.Call(func=ast.Name(id=self.name) | ast.Attribute(attr=self.name) as func):
                self._found(func, place, call=node)
                for child in (func, *node.args, *node.keywords):
                    self._inside(child, place)
            case ast.Name(id=self.name, ctx=ast.Load()) | ast.Attribute(attr=self.name, ctx=ast.Load()):
                self._found(node, place)
                self._inside(node, place)
            case ast.Expr(value=ast.Call(func=func) as call) if self._sets_mode(func):
                place.frame.mode = _flag(call)
            case _:
                self._inside(node, place)

    def _inside(self, node: ast.AST, place: _Place) -> None:
        for child in parts(node):
            self.visit(child, place)

    def _found(self, node: ast.Name | ast.Attribute, place: _Place, call: ast.Call | None = None) -> None:
        mode = place.frame.mode
        if mode is None and place.function is None:
            mode = Mode.ON
        self.found.append(CallSite(node, self.program, place.function, place.syntax, mode, call is not None, call))

    def _at_times(self, node: ast.stmt, place: _Place) -> None:
        """What is set under a condition holds at times."""
        before = place.frame.mode
        self._inside(node, place)
        if place.frame.mode is not before:
            place.frame.mode = Mode.UNKNOWN

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, place: _Place) -> None:
        first = Piece.row_of(node)
        if not self.is_named(first, node.end_lineno or first):
            return
        for decorator in node.decorator_list:
            self.visit(decorator, place)
        frame = _Frame(_decorated(self.program, node))
        if place.function is not None or place.hidden:  # defined within a function: entered as that is
            if frame.mode is None and not self.within:
                frame.mode = self._run_in(node, place)
            inner = _Place(frame, place.function, place.syntax, hidden=place.hidden)
        else:
            function = place.cls.methods.get(node.name) if place.cls else self.program.find_function(node.name)
            if function is not None and gradient_modes.guarded_by_framework(function):
                frame.mode = Mode.OFF
            elif function is not None and gradient_modes.trained_by_framework(function):
                frame.mode = Mode.ON
            inner = _Place(frame, function, node, hidden=function is None)
        for statement in node.body:
            self.visit(statement, inner)

    def _run_in(self, node: ast.FunctionDef | ast.AsyncFunctionDef, place: _Place) -> Mode | None:
        """The mode in which a function calls another that it defines, or gives it to a call, if always the same one."""
        if place.syntax is None or not any(_name(inner) == self.name for inner in ast.walk(node)):
            return None
        scan = _Scan(self.program, node.name, within=True)
        outer = _Place(_Frame(None), place.function, place.syntax)
        for statement in place.syntax.body:
            scan.visit(statement, outer)
        calls = [inner for inner in ast.walk(place.syntax) if isinstance(inner, ast.Call)]
        given = {id(one) for call in calls for one in (call.func, *call.args, *(word.value for word in call.keywords))}
        modes = {site.mode if id(site.node) in given else None for site in scan.found}
        return modes.pop() if len(modes) == 1 else None

    def _class(self, node: ast.ClassDef, place: _Place) -> None:
        listed = place.function is None and place.cls is None and not place.hidden
        cls = self.program.find_class(node.name) if listed else None
        inside = _Place(place.frame, place.function, place.syntax, cls, hidden=cls is None)
        for statement in node.body:
            self.visit(statement, inside)

    def _with(self, node: ast.With | ast.AsyncWith, place: _Place) -> None:
        frame = place.frame
        before = frame.mode
        for item in node.items:
            self.visit(item.context_expr, place)
            mode = _context(self.program, item.context_expr)
            if mode is not None and not (mode is Mode.UNKNOWN and frame.mode is Mode.OFF):
                frame.mode = mode
        for statement in node.body:
            self.visit(statement, place)
        frame.mode = before

    def _sets_mode(self, func: ast.expr) -> bool:
        return self.program.qualify(dotted(func)) in self.program.contracts.setters


def _name(node: ast.AST) -> str:
    """The name, or the attribute's, that a node is."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _flag(call: ast.Call) -> Mode:
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    match given:
        case [ast.Constant(value=False)]:
            return Mode.OFF
        case [ast.Constant(value=True)]:
            return Mode.ON
    return Mode.UNKNOWN


def _context(program: Program, item: ast.expr) -> Mode | None:
    """The mode inside `with item:`; None where it stays as it is."""
    name = outlined_name(item)
    qualified = program.qualify(name)
    mode = _of_library(program, item, qualified)
    if mode is not None:
        return mode
    neutral = program.contracts.neutral
    if qualified in neutral or neutral.has_method(name.rpartition(".")[2]):
        return None
    return _of_project(program, name, Mode.UNKNOWN)


def _decorated(program: Program, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Mode | None:
    """The mode that a function's decorators set; None where they set none."""
    for decorator in node.decorator_list:
        name = outlined_name(decorator)
        qualified = program.qualify(name)
        mode = _of_library(program, decorator, qualified) or _of_project(program, name, None)
        if mode is not None:
            return mode
    return None


def _of_library(program: Program, node: ast.expr, qualified: str) -> Mode | None:
    """The mode set by `torch.no_grad()` and its kin, called or not."""
    if isinstance(node, ast.Call) and qualified in program.contracts.setters:
        return _flag(node)
    mode = gradient_modes.mode_of_external(program.contracts, qualified)
    if mode is not None and isinstance(node, ast.Call) and (node.args or node.keywords):
        return Mode.UNKNOWN
    return mode


def _of_project(program: Program, name: str, otherwise: Mode | None) -> Mode | None:
    """The mode that a context manager or decorator of the project sets, by what it mentions."""
    found = program.find_function(name) or program.find_class(name) or program.resolve(program.qualify(name))
    if found is None:
        return otherwise
    called = gradient_modes.called_by(found)
    contracts = program.contracts
    if any(name in contracts.off for name in called):
        return Mode.OFF
    if any(name in contracts.setters or name in contracts.on for name in called):
        return Mode.UNKNOWN
    return None


def made_of(program: Program, names: Set[str]) -> set[str]:
    """The variables and attributes (by their last names) that a file makes of a class with one of these names."""
    found: set[str] = set()
    for piece in program.source.pieces:
        if piece.outline is None or not any(name in piece.text for name in names):
            continue
        for node in ast.walk(piece.outline):
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and _makes(node.value, names):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                found.update(path.rpartition(".")[2] for path in map(dotted, targets) if path)
    return found


def _makes(value: ast.expr, names: Set[str]) -> bool:
    return any(isinstance(n, ast.Call) and dotted(n.func).rpartition(".")[2] in names for n in ast.walk(value))


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
