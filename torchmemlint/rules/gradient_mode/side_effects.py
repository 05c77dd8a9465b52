"""What code leaves behind beside its results: values that later code may differentiate, stored out of its own names.

Gradients are turned off around code whose results need none. What the same code keeps on an object, in a container that
others hold, or in a global would have no graph either. Told from the syntax of the code and of what it calls, in this
file and in others: asked only where a fix would be offered.
"""

from __future__ import annotations

import ast
import builtins
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from torchmemlint.findings import Span
from torchmemlint.flow.facts import FileFacts, ModuleCall, Use, WeakCall
from torchmemlint.flow.program import ClassInfo, Function, Program
from torchmemlint.flow.values import Mode, Origin
from torchmemlint.syntax.outline import dotted

_DEPTH = 5  # calls followed
_FUNCTIONS = 80  # looked at for one question
_MUTATING = frozenset("add append appendleft extend insert push put setdefault update register_buffer".split())
# Methods and functions whose results have no graph, whatever they are called on or with.
_NUMBERS = frozenset(
    "argmax argmin argsort detach eq ge gt item le lt ne numpy tolist size dim numel data_ptr keys format strip split "
    "parameters named_parameters state_dict eval train step zero_grad time perf_counter".split()
)
_NUMBER_ATTRIBUTES = frozenset("shape ndim dtype device data grad training config".split())
_NUMBER_TYPES = frozenset("bool bytes dict float int set str".split())
_NUMBER_BUILTINS = frozenset(
    "bool float format hash id input int isinstance issubclass len open ord print range repr round str type".split()
)
_PASSING_ON = frozenset(
    "abs dict divmod enumerate frozenset list max min next pow reversed set sorted sum tuple zip".split()
)
_MEMOS = frozenset("cache cached_property lru_cache memoize memoized".split())
_PROPERTIES = _MEMOS | {"property"}
_HOOKING = frozenset({"register_forward_hook", "register_forward_pre_hook"})
# What a module is asked for by code that has nothing to do with its last call.
_USUAL = frozenset(
    "T bias buffers config device dtype fc grad hidden_size in_features module modules name out_features parameters "
    "shape state_dict training weight".split()
)


@dataclass(frozen=True, slots=True)
class Stored:
    """A value that code stores outside of itself."""

    where: str  # source text of what it is stored in

    def __str__(self) -> str:
        return self.where


def of_function(facts: FileFacts, function: Function) -> Stored | None:
    """What a function, or one that it calls, stores where later code finds it and may differentiate it."""
    if function.own_syntax is None:
        return None
    search = _Search(facts)
    return search.function(function, frozenset(), 0) or search.hooks()


def of_statements(facts: FileFacts, function: Function | None, span: Span) -> Stored | None:
    """The same of whole statements of a function, or of the file itself; the names they assign are not looked at."""
    statements = parsed(facts, span)
    search = _Search(facts)
    return search.statements(statements, function) or search.hooks() if statements is not None else None


def differentiated(facts: FileFacts, span: Span, wasted: Origin | None = None) -> Stored | None:
    """What a forward pass within a span gives, where something differentiates it, but for the one that is `wasted`.

    The same of one of which nobody knows what becomes of it.
    """
    calls: list[ModuleCall | WeakCall] = [*facts.module_calls, *facts.weak_calls]
    for call in calls:
        if call.site.piece.context or not span.contains(call.site.span) or call.scope.mode is Mode.OFF:
            continue
        use = facts.uses.get(call.origin, Use.NOTHING)
        if call.origin != wasted and (not use or Use.DIFFERENTIATED in use):
            return Stored(f"{call.callee}(...)")
    return None


def parsed(facts: FileFacts, span: Span) -> list[ast.stmt] | None:
    """The statements on the rows of a span; None where these rows are no whole statements."""
    rows = facts.source.rows[span.start.row - 1 : span.end.row]
    text = textwrap.dedent("\n".join(rows))
    try:
        return ast.parse(text).body
    except SyntaxError:  # a `return` or `await` parses anywhere: the rows hold a part of a statement
        return None


_Hook: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda"


class _Names:
    """What the names of a function, or of a file's own statements, stand for."""

    def __init__(
        self,
        function: Function | None,
        program: Program,
        inside: frozenset[str] = frozenset(),
        hook: _Hook | None = None,
    ) -> None:
        self.function, self.program = function, program
        syntax = function.own_syntax if function is not None else hook
        self.syntax = syntax
        self.inside = inside  # parameters that are given what the caller makes for itself
        self.parameters: dict[str, ast.expr | None] = {}
        if syntax is not None:
            arguments = syntax.args
            given = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
            self.parameters = {one.arg: one.annotation for one in given if one is not None}
        self.nodes: list[ast.AST] = _own_nodes(program)
        if syntax is not None:
            self.nodes = list(_below(syntax.body if isinstance(syntax.body, list) else [syntax.body]))
        self.outer = {name for node in self.nodes if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names}

    @cached_property
    def bound(self) -> dict[str, list[ast.expr | None]]:
        """What each name is assigned; None for what is not told by an expression."""
        found: dict[str, list[ast.expr | None]] = {}
        for node in self.nodes:
            for target, value in _assigned(node):
                for name, part in _paired(target, value):
                    found.setdefault(name, []).append(part)
        return found

    @cached_property
    def loops(self) -> dict[str, list[ast.expr]]:
        """What the names that loops set run over."""
        found: dict[str, list[ast.expr]] = {}
        for node in self.nodes:
            if isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
                for name in _names(node.target):
                    found.setdefault(name, []).append(node.iter)
        return found

    def is_local(self, name: str) -> bool:
        """Is it a name that the function, or the file's own statements, assign, and no parameter?"""
        if name in self.outer or name in self.parameters:
            return False
        return name in self.bound or name in self.loops

    def is_fresh(self, name: str) -> bool:
        """Does the name stand for what the code has made for itself?"""
        if name in self.inside:
            return True
        return self.is_local(name) and name not in self.loops and all(map(_makes, self.bound[name]))


class _Search:
    """One question about what is stored."""

    def __init__(self, facts: FileFacts) -> None:
        self.facts = facts
        self.seen: set[tuple[Function, frozenset[str]]] = set()
        self.attributes_asked: set[tuple[ClassInfo, str]] = set()
        self.calls: dict[str, list[ModuleCall]] = {}
        for call in facts.module_calls:
            if call.module is not None and call.module.cls is not None:
                self.calls.setdefault(call.callee, []).append(call)

    def function(self, function: Function, inside: frozenset[str], depth: int) -> Stored | None:
        """What the function stores, or what it calls; `inside` are parameters that its caller alone holds."""
        if depth > _DEPTH or len(self.seen) > _FUNCTIONS or (function, inside) in self.seen:
            return None
        self.seen.add((function, inside))
        names = _Names(function, function.program, inside)
        if names.syntax is None:
            return None
        code = _Code(self, names, function.program, depth)
        if any(text.rpartition(".")[2] in _MEMOS for text in function.decorator_texts()):
            returned = [node.value for node in names.nodes if isinstance(node, ast.Return) and node.value is not None]
            if not all(map(code.is_number, returned)):
                return Stored(f"{function.name}(...)")
        return code.stored(names.nodes, targets=True)

    def statements(self, statements: Sequence[ast.stmt], function: Function | None) -> Stored | None:
        """What statements store by calls, and blocks by assignments as well."""
        program = function.program if function is not None else self.facts.program
        code = _Code(self, _Names(function, program), program, 0)
        for statement in statements:
            simple = isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Expr)
            found = code.stored(list(_below([statement])), targets=not simple)
            if found is not None:
                return found
        return None

    def hooks(self) -> Stored | None:
        """What the file's forward hooks store, whichever module they are registered on."""
        program = self.facts.program
        nodes = [node for piece in program.source.pieces for node in program.summary(piece).nodes]
        definitions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
        for node in nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _HOOKING:
                for hook in _hooked(node, definitions):
                    names = _Names(None, program, hook=hook)
                    found = _Code(self, names, program, _DEPTH).stored(names.nodes, targets=True)
                    if found is not None:
                        return found
        return None


@dataclass(slots=True)
class _Code:
    """A stretch of code, with what its names stand for."""

    search: _Search
    names: _Names
    program: Program
    depth: int
    _asked: set[str] = field(default_factory=set)

    def stored(self, nodes: Sequence[ast.AST], *, targets: bool) -> Stored | None:
        """What these nodes, or what they call, store outside."""
        for node in nodes:
            if targets:
                for target, value in _assigned(node):
                    place = self._outside(target)
                    if place is not None and not (value is not None and self.is_number(value)):
                        return Stored(place)
            match node:
                case ast.Call():
                    found = self._mutated(node) or self._called(node)
                    if found is not None:
                        return found
                case ast.Attribute(ctx=ast.Load()):
                    found = self._property(node)
                    if found is not None:
                        return found
        return None

    def _outside(self, target: ast.expr) -> str | None:
        """The text of what a target stores in, where others can see that."""
        match target:
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return next((place for part in parts if (place := self._outside(part)) is not None), None)
            case ast.Starred(value=inner):
                return self._outside(inner)
            case ast.Name(id=name):
                return name if name in self.names.outer else None
            case ast.Attribute() | ast.Subscript():
                root = _root(target)
                if root is None or self.names.is_fresh(root):
                    return None
                read = self._is_read(target) if isinstance(target, ast.Attribute) else self._is_looked_into(target)
                return ast.unparse(target) if read else None
        return None

    def _is_read(self, target: ast.Attribute) -> bool:
        """Does other code read an attribute of this name, or the same code before it is set?"""
        own = {id(node) for node in self.names.nodes}
        reads = list(self._reads_of(target.attr))
        if any(id(node) not in own for node in reads) or not self._is_unconditional(target):
            return bool(reads)
        return any(node.lineno <= target.lineno for node in reads)

    def _is_looked_into(self, container: ast.expr) -> bool:
        """Does code do more with a container than to fill it, as far as it is an attribute?"""
        while isinstance(container, ast.Subscript):
            container = container.value
        if isinstance(container, ast.Call) and isinstance(container.func, ast.Attribute):
            return True  # `self.kept.setdefault(key, []).append(h)`
        return not isinstance(container, ast.Attribute) or any(True for _ in self._reads_of(container.attr))

    def _reads_of(self, attribute: str) -> Iterator[ast.Attribute]:
        """Where the file at hand, or the one of the code, reads an attribute of this name, but for what fills it."""
        for program in {self.search.facts.program, self.program}:
            nodes = [node for piece in program.source.pieces for node in program.summary(piece).nodes]
            filled = {id(part) for node in nodes for part in _filled(node)}
            for node in nodes:
                if (
                    isinstance(node, ast.Attribute)
                    and node.attr == attribute
                    and isinstance(node.ctx, ast.Load)
                    and id(node) not in filled
                ):
                    yield node

    def _is_unconditional(self, target: ast.expr) -> bool:
        """Does the function assign it whenever it runs?"""
        body = self.names.syntax.body if self.names.syntax is not None else None
        return isinstance(body, list) and any(
            isinstance(one, ast.Assign | ast.AnnAssign) and any(node is target for node in ast.walk(one))
            for one in body
        )

    def _mutated(self, call: ast.Call) -> Stored | None:
        """`self.cache.append(h)`, `buffer.copy_(h)`, `setattr(self, "h", h)`."""
        values = [*call.args, *(keyword.value for keyword in call.keywords)]
        match call.func:
            case ast.Name(id="setattr") if len(call.args) == 3:
                owner, values = call.args[0], call.args[2:]
            case ast.Attribute(value=owner, attr=method):
                in_place = method.endswith("_") and not method.startswith("_")
                if method not in _MUTATING and not in_place:
                    return None
            case _:
                return None
        root = _root(owner)
        if root is None or self.names.is_fresh(root) or root in self.program.imported:
            return None
        if all(map(self.is_number, values)):
            return None
        if isinstance(call.func, ast.Attribute) and self._is_method(call.func):
            return None  # followed instead
        return Stored(ast.unparse(owner)) if self._is_looked_into(owner) else None

    def _is_method(self, func: ast.Attribute) -> bool:
        return any(True for _ in self._callees(func))

    def _called(self, call: ast.Call) -> Stored | None:
        for function, first in self._callees(call.func):
            found = self.search.function(function, self._given(call, function, first), self.depth + 1)
            if found is not None:
                return found
        return self._unknown(call)

    def _unknown(self, call: ast.Call) -> Stored | None:
        """An object of which nothing is known is called, and other code reads an attribute of it."""
        path = dotted(call.func)
        if self.depth > 0 or not path or any(True for _ in self._callees(call.func)):
            return None
        root = path.partition(".")[0]
        if root in self.program.imported or root in vars(builtins):
            return None
        return next((Stored(text) for text in self._read_of(path)), None)

    def _read_of(self, path: str) -> Iterator[str]:
        """Attributes of an object that other code reads and does not call."""
        for piece in self.program.source.pieces:
            nodes = self.program.summary(piece).nodes
            called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
            owners = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
            for node in nodes:
                if (
                    isinstance(node, ast.Attribute)
                    and isinstance(node.ctx, ast.Load)
                    and id(node) not in called
                    and id(node) not in owners
                    and node.attr not in _USUAL
                    and dotted(node.value) == path
                ):
                    yield f"{path}.{node.attr}"

    def _property(self, node: ast.Attribute) -> Stored | None:
        """`self.positions`, where that is a method."""
        function = self.names.function
        if function is None or function.cls is None or not _is_self(node.value, function):
            return None
        method = function.cls.method(node.attr)
        if method is None or _PROPERTIES.isdisjoint(text.rpartition(".")[2] for text in method.decorator_texts()):
            return None
        return self.search.function(method, frozenset(), self.depth + 1)

    # -- who is called ---------------------------------------------------------------------------------------------

    def _callees(self, func: ast.expr) -> Iterator[tuple[Function, int]]:
        """Functions that a call may run, with how many of their parameters come before its arguments."""
        function = self.names.function
        cls = function.cls if function is not None else None
        match func:
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super")), attr=name) if cls is not None:
                bases = list(cls.ancestors())[1:]
                found = next((base.methods[name] for base in bases if name in base.methods), None)
                if found is not None:
                    yield found, 1
                return
            case ast.Attribute(value=owner, attr=name):
                if function is not None and cls is not None and _is_self(owner, function):
                    method = cls.method(name)
                    if method is not None:
                        yield method, 0 if "staticmethod" in method.decorator_texts() else 1
                        return
                root = _root(owner)
                if root is not None and self.names.is_fresh(root):
                    return
                for one in self._classes(owner):
                    method = one.method(name)
                    if method is not None:
                        yield method, 1
            case ast.Name(id=name):
                named = self._named(name)
                if named is not None:
                    yield named, 0
                    return
        yield from ((one, 1) for one in self._run(func))
        path = dotted(func)
        elsewhere = self.program.resolve(self.program.qualify(path)) if path else None
        if isinstance(elsewhere, Function):
            yield elsewhere, 0

    def _named(self, name: str) -> Function | None:
        """A function of this name: within this one, or of the file."""
        syntax = self.names.syntax
        if syntax is not None and any(isinstance(n, ast.FunctionDef) and n.name == name for n in self.names.nodes):
            return None  # its statements are among those of this function
        if syntax is not None and (self.names.is_local(name) or name in self.names.parameters):
            return None
        found = self.program.find_function(name)
        if found is None and self.names.function is not None:
            around = self.names.function.parents()
            found = next((one for one in around if one.name == name), None)
        return found

    def _run(self, func: ast.expr) -> Iterator[Function]:
        """What the call of an object runs: `forward` of a module."""
        for cls in self._classes(func):
            for name in ("forward", "__call__"):
                method = cls.method(name)
                if method is not None:
                    yield method

    def _classes(self, owner: ast.expr) -> Iterator[ClassInfo]:
        """Classes of the project that an object may be of, as far as assignments, annotations and the analysis tell."""
        text = ast.unparse(owner)
        for call in self.search.calls.get(text, ()):
            if call.module is not None and call.module.cls is not None:
                yield call.module.cls
        while isinstance(owner, ast.Subscript):
            owner = owner.value
        function = self.names.function
        match owner:
            case ast.Attribute(value=inner, attr=attribute):
                own = function.cls if function is not None and _is_self(inner, function) else None
                for cls in own.ancestors() if own is not None else self._classes(inner):
                    for method in cls.methods.values():
                        if attribute in method.outline.names:
                            yield from _made_for(method, f"{_self_name(method)}.{attribute}")
            case ast.Name(id=name):
                if name in self.names.parameters:
                    annotation = self.names.parameters[name]
                    yield from _constructed(self.program, [annotation] if annotation is not None else [])
                elif self.names.is_local(name):
                    yield from _constructed(self.program, self.names.bound.get(name, ()))
                else:
                    around = _Names(None, self.program)
                    yield from _constructed(self.program, around.bound.get(name, ()))

    def _given(self, call: ast.Call, function: Function, first: int) -> frozenset[str]:
        """Parameters that are given what this code has made for itself."""
        syntax = function.own_syntax
        if syntax is None:
            return frozenset()
        names = [one.arg for one in (*syntax.args.posonlyargs, *syntax.args.args)][first:]
        given = dict(zip(names, call.args, strict=False))
        given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
        return frozenset(name for name, value in given.items() if self._is_own(value))

    def _is_own(self, value: ast.expr) -> bool:
        return isinstance(value, ast.Name) and self.names.is_fresh(value.id)

    # -- what has no graph -----------------------------------------------------------------------------------------

    def is_number(self, value: ast.expr | None) -> bool:
        """Is it for certain that a value has no graph, also with gradients on?"""
        match value:
            case None | ast.Constant() | ast.JoinedStr() | ast.Compare() | ast.Lambda() | ast.UnaryOp(op=ast.Not()):
                return True
            case ast.Name(id=name):
                return self._name_is_number(name)
            case ast.Call():
                return self._call_is_number(value)
            case ast.Attribute(attr=attribute):
                return attribute in _NUMBER_ATTRIBUTES or self._is_imported(value) or self._attribute_is_number(value)
            case ast.Subscript(value=owner) | ast.Starred(value=owner):
                return self.is_number(owner)
            case ast.UnaryOp(operand=operand):
                return self.is_number(operand)
            case ast.BinOp(left=left, right=right):
                return self.is_number(left) and self.is_number(right)
            case ast.BoolOp(values=parts):
                return all(map(self.is_number, parts))
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
                return all(map(self.is_number, parts))
            case ast.Dict(values=parts):
                return all(map(self.is_number, parts))
            case ast.IfExp(body=one, orelse=other):
                return self.is_number(one) and self.is_number(other)
            case ast.ListComp(elt=element) | ast.GeneratorExp(elt=element) | ast.SetComp(elt=element):
                return self.is_number(element)
            case ast.DictComp(value=element):
                return self.is_number(element)
        return False

    def _name_is_number(self, name: str) -> bool:
        if name in self._asked:
            return True  # as its other parts say
        if name in self.names.parameters:
            annotation = self.names.parameters[name]
            return isinstance(annotation, ast.Name) and annotation.id in _NUMBER_TYPES
        if not self.names.is_local(name):
            return name in self.program.imported or self.program.defines(name)
        self._asked.add(name)
        try:
            bound = self.names.bound.get(name, ())
            runs = self.names.loops.get(name, ())
            return all(part is not None and self.is_number(part) for part in bound) and all(map(self._is_data, runs))
        finally:
            self._asked.discard(name)

    def _attribute_is_number(self, node: ast.Attribute) -> bool:
        """Is all that the class puts into an attribute of its object a number?"""
        function = self.names.function
        if function is None or function.cls is None or not _is_self(node.value, function):
            return False
        if (function.cls, node.attr) in self.search.attributes_asked:
            return True  # as its other parts say
        self.search.attributes_asked.add((function.cls, node.attr))
        try:
            return all(
                value is not None and code.is_number(value)
                for cls in function.cls.ancestors()
                for method in cls.methods.values()
                if node.attr in method.outline.names
                for code in [_Code(self.search, _Names(method, method.program), method.program, self.depth)]
                for one in code.names.nodes
                for target, value in _assigned(one)
                if any(dotted(part) == f"{_self_name(method)}.{node.attr}" for part in _targets(target))
            )
        finally:
            self.search.attributes_asked.discard((function.cls, node.attr))

    def _is_data(self, over: ast.expr) -> bool:
        """Does a loop run over a loader, or over numbers?"""
        match over:
            case ast.Call(func=ast.Name(id="enumerate" | "zip" | "tqdm" | "iter"), args=[*parts]):
                return all(map(self._is_data, parts))
            case ast.Name(id=name):
                return name in self.names.parameters or not self.names.is_local(name) or self.is_number(over)
            case ast.Attribute():
                return True
        return self.is_number(over)

    def _call_is_number(self, call: ast.Call) -> bool:
        values = [*call.args, *(keyword.value for keyword in call.keywords)]
        match call.func:
            case ast.Name(id=name) if name in _NUMBER_BUILTINS:
                return True
            case ast.Name(id=name) if name in _PASSING_ON:
                return all(map(self.is_number, values))
            case ast.Attribute(attr=method) if method in _NUMBERS:
                return True
            case ast.Attribute(value=owner) if not self._is_imported(owner) and self.is_number(owner):
                return all(map(self.is_number, values))
        return self._is_imported(call.func)

    def _is_imported(self, func: ast.expr) -> bool:
        """Does a name lead to a package that knows nothing of torch's graphs: `np.mean`?"""
        path = dotted(func)
        first = path.partition(".")[0]
        if not path or first not in self.program.imported or self.names.is_local(first):
            return False
        qualified = self.program.imported[first]
        return qualified.partition(".")[0] in _WITHOUT_GRAPHS


_WITHOUT_GRAPHS = frozenset("collections datetime json logging math numpy os random sklearn sys time".split())


def _filled(node: ast.AST) -> Iterator[ast.expr]:
    """What a node puts something into: `self.kept` of `self.kept.append(h)` and of `self.kept[i] = h`."""
    match node:
        case ast.Call(func=ast.Attribute(value=owner, attr=method)) if method in _MUTATING - {"setdefault"}:
            yield owner
        case ast.Subscript(value=owner, ctx=ast.Store()):
            yield owner


def _hooked(registering: ast.Call, definitions: Iterable[ast.FunctionDef]) -> list[_Hook]:
    """The functions that a call registers, by name: also those that make them."""
    given = registering.args[0] if registering.args else None
    if isinstance(given, ast.Lambda):
        return [given]
    if isinstance(given, ast.Call):
        given = given.func
    name = dotted(given).rpartition(".")[2] if given is not None else ""
    return [one for one in definitions if one.name == name]


def _own_nodes(program: Program) -> list[ast.AST]:
    """The file's own statements."""
    return [node for piece in program.source.pieces if piece.kind == "code" for node in program.outline_of(piece).nodes]


def _below(statements: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All nodes of statements, outer ones first."""
    for statement in statements:
        yield from ast.walk(statement)


def _assigned(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """What a node assigns to, each with the value."""
    match node:
        case ast.Assign(targets=targets, value=value):
            yield from ((target, value) for target in targets)
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            yield target, value
        case ast.AugAssign(target=target, value=value) | ast.NamedExpr(target=target, value=value):
            yield target, value
        case ast.With(items=items) | ast.AsyncWith(items=items):
            yield from ((item.optional_vars, None) for item in items if item.optional_vars is not None)
        case ast.For(target=ast.Attribute() | ast.Subscript() as target):
            yield target, None


def _paired(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[str, ast.expr | None]]:
    """The names in a target, each with its part of the value, or all of it where parts are not told apart."""
    match target, value:
        case ast.Name(id=name), _:
            yield name, value
        case ast.Starred(value=inner), _:
            yield from _paired(inner, value)
        case ((ast.Tuple(elts=names) | ast.List(elts=names)), (ast.Tuple(elts=parts) | ast.List(elts=parts))):
            if len(names) == len(parts) and not any(isinstance(one, ast.Starred) for one in (*names, *parts)):
                for one, part in zip(names, parts, strict=True):
                    yield from _paired(one, part)
            else:
                yield from ((name, value) for name in _names(target))
        case _:
            yield from ((name, value) for name in _names(target))


def _names(target: ast.expr) -> list[str]:
    """The names that a target binds."""
    match target:
        case ast.Name(id=name):
            return [name]
        case ast.Starred(value=inner):
            return _names(inner)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return [name for part in parts for name in _names(part)]
    return []


def _targets(target: ast.expr) -> list[ast.expr]:
    """The parts of a target that are no tuples."""
    match target:
        case ast.Starred(value=inner):
            return _targets(inner)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return [one for part in parts for one in _targets(part)]
    return [target]


def _makes(value: ast.expr | None) -> bool:
    """Does an expression make a new object, and hand out none that exists?"""
    match value:
        case ast.Call(func=ast.Attribute(attr="get" | "setdefault" | "pop")):
            return False
        case ast.Call() | ast.Constant() | ast.BinOp() | ast.Compare() | ast.JoinedStr():
            return True
        case ast.List() | ast.Dict() | ast.Set() | ast.Tuple() | ast.ListComp() | ast.DictComp() | ast.SetComp():
            return True
    return False


def _root(node: ast.expr) -> str | None:
    """The first name of `self.cache["h"].states`; None where it begins with a call or the like."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
        node = node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return _root(node.func.value)  # `self.cache.setdefault(k, []).append(h)`
    return node.id if isinstance(node, ast.Name) else None


def _self_name(method: Function) -> str:
    syntax = method.own_syntax
    given = [*syntax.args.posonlyargs, *syntax.args.args] if syntax is not None else []
    return given[0].arg if given else "self"


def _is_self(node: ast.expr, function: Function) -> bool:
    return isinstance(node, ast.Name) and node.id == _self_name(function)


def _made_for(method: Function, path: str) -> Iterator[ClassInfo]:
    """Classes whose objects a method puts into an attribute."""
    names = _Names(method, method.program)
    for node in names.nodes:
        for target, value in _assigned(node):
            if value is None or dotted(target) != path:
                continue
            yield from _constructed(method.program, [value])
            annotation = names.parameters.get(value.id) if isinstance(value, ast.Name) else None
            if annotation is not None:
                yield from _constructed(method.program, [annotation])


def _constructed(program: Program, values: Iterable[ast.expr | None]) -> Iterator[ClassInfo]:
    """Classes of the project that expressions name."""
    for value in values:
        for node in ast.walk(value) if value is not None else ():
            if isinstance(node, ast.Name | ast.Attribute) and (path := dotted(node)):
                found = program.find_class(path) or program.resolve_class(program.qualify(path))
                if found is not None:
                    yield found
