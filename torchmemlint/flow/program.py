"""The functions and classes of the analysed code, found by name; bodies are parsed when first needed."""

from __future__ import annotations

import ast
import builtins
import itertools
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import libcst as cst

from torchmemlint.findings import Lead
from torchmemlint.flow.names import suites
from torchmemlint.immutable import immutable
from torchmemlint.knowledge import modules
from torchmemlint.knowledge.contracts import Contracts, contracts
from torchmemlint.syntax.outline import Outline, dotted, imports, outline
from torchmemlint.syntax.source_module import Layout, Piece, SourceModule

if TYPE_CHECKING:
    from torchmemlint.flow.project import Project

T = TypeVar("T")

BUILTINS = frozenset(dir(builtins))
_LOADING = ("torch.utils.data", "torchvision.")  # what is of use without torch's tensors
# Frameworks whose training loops are spelled like torch's, with other memory behind them.
_OTHER_FRAMEWORKS = frozenset("chainer jittor megengine mindspore mxnet oneflow paddle tinygrad".split())
# Triton's Python backend makes an object of the class of this name and calls the method before any other.
_MODULE_SELF_METHODS = frozenset(
    {"eval", "parameters", "named_parameters", "modules", "register_buffer", "register_parameter", "named_modules"}
)


@dataclass(eq=False, slots=True, repr=False)
class Function:
    """A function, method or nested function of the project."""

    name: str
    piece: Piece
    program: Program
    cls: ClassInfo | None = None
    parent: Function | None = None
    outline: Outline = field(default_factory=Outline)
    syntax: ast.FunctionDef | ast.AsyncFunctionDef | None = None  # where the piece is this function alone
    _node: cst.FunctionDef | None = None

    def __repr__(self) -> str:
        return f"Function({self.qualname})"

    @property
    def node(self) -> cst.FunctionDef:
        """Its libcst tree, parsed when first asked for."""
        if self._node is None:
            found = self.piece.definition()
            self._node = found if isinstance(found, cst.FunctionDef) else _nothing(self.name)
        return self._node

    @property
    def own_syntax(self) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """Its tree of the standard parser; of a function within another one, the first of its name there."""
        around = next((one.syntax for one in self.parents() if one.syntax is not None), None)
        if self.syntax is not None or around is None:
            return self.syntax
        inside = (node for node in ast.walk(around) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
        return next((node for node in inside if node.name == self.name), None)

    @property
    def qualname(self) -> str:
        """Dotted name within the file."""
        owner = self.parent.qualname + "." if self.parent else self.cls.name + "." if self.cls else ""
        return owner + self.name

    def parents(self) -> Iterator[Function]:
        """The functions that it is defined within, innermost first."""
        parent = self.parent
        while parent is not None:
            yield parent
            parent = parent.parent

    @property
    def is_abstract(self) -> bool:
        """Is it for classes that derive from its own to replace: it says so, does nothing, or only raises?"""
        if self.cls is None or self.syntax is None:
            return False
        if self.syntax.decorator_list and any(text.endswith("abstractmethod") for text in self.decorator_texts()):
            return True
        body = [
            one for one in self.syntax.body if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
        ]
        match body:
            case [] | [ast.Pass()]:
                return True
            case [ast.Raise(exc=ast.Name(id=name) | ast.Call(func=ast.Name(id=name)))]:
                return name == "NotImplementedError"
        return False

    def renew(self, outline: Outline, syntax: ast.stmt | None) -> None:
        """Have another body from now on."""
        self.outline = outline
        self.syntax = syntax if isinstance(syntax, ast.FunctionDef | ast.AsyncFunctionDef) else None
        self._node = None

    def switched_off(self) -> Iterator[tuple[str, ast.Expr]]:
        """Its statements `f(False)`, with the name of what is called."""
        for node in self.outline.nodes:
            match node:
                case ast.Expr(value=ast.Call(func=func, args=[ast.Constant(value=False)])):
                    yield self.program.qualify(dotted(func)), node

    @property
    def is_decorated(self) -> bool:
        """Does it have decorators? Answered without libcst where the standard parser's tree tells."""
        return bool(self.syntax.decorator_list if self.syntax is not None else self.node.decorators)

    def decorator_texts(self) -> list[str]:
        """Dotted names of the decorators, calls included ("torch.no_grad")."""
        if self.syntax is not None:
            return [text for d in self.syntax.decorator_list if (text := outlined_name(d))]
        return [text for d in self.node.decorators if (text := decorator_name(d))]


@dataclass(eq=False, slots=True, repr=False)
class ClassInfo:
    """A class of the project."""

    name: str
    piece: Piece
    program: Program
    bases: tuple[str, ...]  # qualified names, or plain names of classes of this file
    oid: int  # identity of `self` in the analysis of its methods
    local: cst.ClassDef | None = None  # of a class within a function or condition: its tree
    _decorators: Sequence[cst.Decorator] | None = None
    _shows_layers: dict[int, bool] = field(default_factory=dict)  # by how far the classes that it builds are followed
    _ancestors: list[ClassInfo] | None = None  # as far as anybody has asked
    _bases_left: list[tuple[ClassInfo, str]] = field(default_factory=list)  # to be looked for: by name, and of whom
    _inherited: dict[str, Function | None] = field(default_factory=dict)  # methods that were asked for
    _is_module: bool | None = None
    _methods: dict[str, Function] | None = None

    def __repr__(self) -> str:
        return f"ClassInfo({self.name})"

    @property
    def methods(self) -> dict[str, Function]:
        """Its own methods by name. They are looked at when asked for: of most classes elsewhere, only the bases are."""
        if self._methods is None:
            self._methods = self.program.methods_of(self)
        return self._methods

    @property
    def outline(self) -> Outline:
        """What its body shows; likewise. Of a class within a function, nothing."""
        return self.program.summary(self.piece) if self.local is None else Outline()

    @property
    def decorators(self) -> Sequence[cst.Decorator]:
        """Its decorators, parsed when first asked for."""
        if self._decorators is None:
            if self.local is not None:
                self._decorators = self.local.decorators
            elif isinstance(self.piece.outline, ast.ClassDef) and not self.piece.outline.decorator_list:
                self._decorators = ()
            else:
                found = self.piece.definition()
                self._decorators = found.decorators if found is not None else ()
        return self._decorators

    def decorator_texts(self) -> list[str]:
        """Dotted names of the decorators, calls included. A class is long: libcst reads it only where it must."""
        if self.local is None and isinstance(self.piece.outline, ast.ClassDef):
            return [text for decorator in self.piece.outline.decorator_list if (text := outlined_name(decorator))]
        return [text for decorator in self.decorators if (text := decorator_name(decorator))]

    def setting(self, name: str) -> cst.BaseExpression | None:
        """The number, string or name that the class body assigns to a name."""
        if self.local is not None:
            body: Sequence[ast.stmt] = ast.parse(cst.Module([self.local]).code).body
        else:
            body = (self.piece.outline,) if self.piece.outline is not None else ()
        for statement in body[0].body if body and isinstance(body[0], ast.ClassDef) else ():
            match statement:
                case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
                    pass
                case ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value) if target == name:
                    pass
                case _:
                    continue
            if isinstance(value, ast.Constant | ast.Name):
                return cst.parse_expression(ast.unparse(value))
        return None

    def ancestors(self) -> Iterator[ClassInfo]:
        """This class and its project bases, nearest first. To ask for the nearest alone reads no file for others."""
        if self._ancestors is None:
            self._ancestors, self._bases_left = [self], [(self, name) for name in self.bases]
        for cls in self._ancestors:  # which grows on the way
            yield cls.program.asked(cls)
            while self._bases_left and cls is self._ancestors[-1]:
                derived, name = self._bases_left.pop(0)
                base = derived.program.resolve_class(name)
                if base is not None and base not in self._ancestors:
                    self._ancestors.append(base)
                    self._bases_left += [(base, name) for name in base.bases]

    def method(self, name: str) -> Function | None:
        """The method that an attribute of this name means, own or inherited."""
        if name in self._inherited:
            found = self._inherited[name]
            return found.program.asked(found) if found is not None else None
        for cls in self.ancestors():
            if name in cls.methods:
                break
        found = self._inherited[name] = cls.methods.get(name)
        return found

    def forget_bases(self) -> None:
        """Look for them anew when they are asked for."""
        self._ancestors = self._is_module = None
        self._bases_left.clear()
        self._inherited.clear()

    def switched_off(self) -> Iterator[tuple[str, ast.Expr]]:
        """Statements `f(False)` of the constructor, with the name of what is called, for all that the objects do."""
        constructor = self.method("__init__")
        if constructor is not None:
            yield from constructor.switched_off()

    def fills_with_lists(self, attribute: str) -> bool:
        """Is all that its methods put into `self.attribute[...]` an empty list?"""
        values = [
            node.value
            for cls in self.ancestors()
            for method in cls.methods.values()
            if method.syntax is not None and attribute in method.outline.names
            for node in ast.walk(method.syntax)
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Subscript) and dotted(target.value) == f"self.{attribute}"
        ]
        return bool(values) and all(_is_empty_list(value) for value in values)

    def external_bases(self) -> list[str]:
        """Qualified names of all library bases, also of project bases."""
        return [name for cls in self.ancestors() for name in cls.bases if cls.program.resolve_class(name) is None]

    def base_names(self) -> list[str]:
        """Qualified names of all bases, library and project."""
        return [name for cls in self.ancestors() for name in cls.bases]

    @property
    def is_module(self) -> bool:
        """Does it derive from `nn.Module`, visibly or (where a base is out of view) by what it is made of?

        Asked often, answered once.
        """
        if self._is_module is None:
            self._is_module = self._derives_from_module() or self._looks_like_module()
        return self._is_module

    def _looks_like_module(self) -> bool:
        bases = self.external_bases()
        if "forward" not in self.methods or not any(name.startswith(".") or "." in name for name in bases):
            return False
        if self.outline.methods.get("self", set()) & _MODULE_SELF_METHODS:
            return True
        return any(self.program.contracts.is_module_class(self.program.qualify(path)) for path in self.outline.called)

    def _derives_from_module(self) -> bool:
        """Is a base known to be a module? Bases in the same file are asked before any other file is read."""
        seen: set[ClassInfo] = set()
        near: list[ClassInfo] = [self]
        far: list[tuple[ClassInfo, str]] = []
        while near or far:
            if near:
                cls: ClassInfo | None = near.pop()
            else:
                derived, name = far.pop()
                cls = derived.program.resolve_class(name)
            if cls is None or cls in seen:
                continue
            seen.add(cls)
            if any(self.program.contracts.is_module_class(name) for name in cls.bases):
                return True
            for name in reversed(cls.bases):
                base = cls.program.find_class(name)
                if base is not None:
                    near.append(base)
                else:
                    far.append((cls, name))
        return False

    @property
    def builds_layers(self) -> bool:
        """Does it (or a base in view) make layers or parameters?"""
        for cls in self.ancestors():
            for path in cls.outline.called:
                qualified = self.program.qualify(path)
                if self.program.contracts.is_module_class(qualified) and modules.has_parameters(qualified) is not False:
                    return True
                if qualified.endswith(("nn.Parameter", ".register_parameter")):
                    return True
                found = self.program.find_class(path)
                if found is not None and found is not cls:
                    return True
        return False

    @property
    def shows_layers(self) -> bool:
        """Does it (or a class that it builds) make layers that have weights for certain?"""
        return self.shows_layers_within(3)

    def shows_layers_within(self, depth: int) -> bool:
        """The same, through at most so many classes that build each other; asked often, answered once."""
        found = self._shows_layers.get(depth)
        if found is None:
            found = self._shows_layers[depth] = _shows_layers(self, depth)
        return found

    @property
    def is_pipeline(self) -> bool:
        """Do its objects hold modules in evaluation mode, as diffusers' pipelines do?"""
        return any(self.program.contracts.is_pipeline(name) for name in self.base_names())

    def methods_called_on(self, path: str) -> set[str]:
        """Names of methods that the class calls on "self.x"."""
        found: set[str] = set()
        for cls in self.ancestors():
            found |= cls.outline.methods.get(path, set())
            if path in cls.outline.called:
                found.add("__call__")
        return found


@immutable()
class Sketch:
    """What is kept of a file that was let go of, so that to read it again takes little."""

    layout: Layout
    imported: Mapping[str, str]
    star_imports: tuple[str, ...]
    exported: frozenset[str] | None  # what a plain `__all__` names
    bases: Mapping[str, tuple[str, ...]]  # of its classes


class Program:
    """The functions, classes and imported names of one file, whose imports may lead to other files of a project.

    `known`: what was kept of an earlier reading of the same text, by which the source is laid out.
    """

    def __init__(
        self,
        source: SourceModule,
        project: Project | None = None,
        promised: Contracts | None = None,
        known: Sketch | None = None,
    ) -> None:
        self.source = source
        self.project = project
        self.contracts = promised or (project.contracts if project is not None else contracts())
        self.imported: dict[str, str] = {}
        self.functions: dict[str, Function] = {}
        self.classes: dict[str, ClassInfo] = {}
        self._made: list[ClassInfo] = []  # all classes, also those within functions
        self.outline = Outline()
        self._pieces: dict[str, Piece] = {}
        self._outlines: dict[Piece, Outline] = {}
        self._resolved: dict[str, Function | ClassInfo | None] = {}
        self.asked_in = -1  # the number of the project's analysis that last asked something of this file
        self._class_outlines: dict[Piece, tuple[Outline, dict[str, Outline]]] = {}
        self._ids = project.ids if project is not None else itertools.count(2)
        for piece in source.pieces:
            if piece.name:
                self._pieces[piece.name] = piece
        if known is None:
            outlines = [p.outline for p in source.pieces if p.outline is not None]
            self.imported.update(imports(outlines))
            self.star_imports = tuple(module.removesuffix("*") for name, module in imports(outlines) if name == "*")
            self._exported = _dunder_all(outlines)
            self._bases: Mapping[str, tuple[str, ...]] = {}
        else:
            self.imported.update(known.imported)
            self.star_imports, self._exported, self._bases = known.star_imports, known.exported, known.bases

    def sketch(self) -> Sketch | None:
        """What is worth keeping of the file; None where the standard parser could not read it."""
        layout = self.source.layout
        if layout is None:
            return None
        bases = {name: self._bases_of(piece) for name, piece in self._pieces.items() if piece.kind == "class"}
        return Sketch(layout, self.imported, self.star_imports, self._exported, bases)

    @property
    def is_of_another_framework(self) -> bool:
        """Does the file train with another framework, and never import torch? Its `backward` is no business of ours."""
        roots = {imported.split(".")[0] for imported in self.imported.values()}
        if not self.imported.get("torch", "torch").endswith("torch"):
            return True  # `import torchmlx as torch`
        if roots.isdisjoint(_OTHER_FRAMEWORKS):
            return self._differentiates_by_itself
        return not any(words in self.source.text for words in ("import torch", "from torch"))

    @property
    def _differentiates_by_itself(self) -> bool:
        """Does it import a package of the project that has a `Tensor` of its own, and of torch no more than loaders?"""
        imports = {path for path in self.imported.values() if not path.startswith(_LOADING)}
        if self.project is None or any(path.split(".")[0] == "torch" for path in imports):
            return False
        if not self.project.mentioning("class Tensor", self.source.path):
            return False
        packages = {"." * (len(path) - len(path.lstrip("."))) + path.lstrip(".").split(".")[0] for path in imports}
        found = (self.resolve(f"{package}.Tensor") for package in sorted(packages))
        return any(isinstance(one, ClassInfo) and "backward" in one.methods and not one.bases for one in found)

    @cached_property
    def is_test(self) -> bool:
        """A module of tests: what it computes is small, and whether it has a graph may be its subject."""
        path = self.source.path
        return suites.is_of_tests(path, self.source.text, self.imported.values())

    def new_oid(self) -> int:
        """A fresh object identity."""
        return next(self._ids)

    def defines(self, name: str) -> bool:
        """Is this a function or class of the module level?"""
        return name in self._pieces or name in self.functions or name in self.classes

    def exports(self, name: str) -> bool:
        """Does `from module import *` give this name, if the module has it?"""
        return name in self._exported if self._exported is not None else not name.startswith("_")

    def is_function(self, name: str) -> bool:
        """Is this a function of the module level?"""
        piece = self._pieces.get(name)
        return piece is not None and piece.kind == "def"

    def piece(self, name: str) -> Piece | None:
        """The piece that defines a function or class of the module level."""
        return self._pieces.get(name)

    def find_function(self, name: str) -> Function | None:
        """A top-level function of this file."""
        if name in self.functions:
            return self.functions[name]
        piece = self._pieces.get(name)
        if piece is None or piece.kind != "def":
            return None
        assert isinstance(piece.outline, ast.FunctionDef | ast.AsyncFunctionDef)
        function = Function(name, piece, self, outline=self.outline_of(piece), syntax=piece.outline)
        self.functions[name] = function
        return function

    def find_class(self, name: str) -> ClassInfo | None:
        """A top-level class of this file."""
        if name in self.classes:
            return self.classes[name]
        piece = self._pieces.get(name)
        if piece is None or piece.kind != "class":
            return None
        return self._add(ClassInfo(name, piece, self, self._bases_of(piece), self.new_oid()))

    def _bases_of(self, piece: Piece) -> tuple[str, ...]:
        """The bases of a class, as `ClassInfo` has them."""
        known = self._bases.get(piece.name)
        if known is not None:
            return known
        assert isinstance(piece.outline, ast.ClassDef)
        return tuple(self.qualify(text) for base in piece.outline.bases if (text := outlined_name(base)))

    def methods_of(self, cls: ClassInfo) -> dict[str, Function]:
        """The methods of a class of the module level, by name."""
        piece = cls.piece
        _, by_name = self._outlines_in_class(piece)
        return {
            part.name: Function(part.name, piece.method(part), self, cls, outline=by_name[part.name], syntax=part)
            for part in (piece.outline.body if isinstance(piece.outline, ast.ClassDef) else ())
            if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)
        }

    def add_local_class(self, node: cst.ClassDef, piece: Piece) -> ClassInfo:
        """Register a class that stands within a function or condition."""
        bases = tuple(self.qualify(text) for arg in node.bases if (text := expression_name(arg.value)))
        info = self._add(ClassInfo(node.name.value, piece, self, bases, self.new_oid(), local=node, _methods={}))
        for statement in node.body.body:
            if isinstance(statement, cst.FunctionDef):
                method = statement.name.value
                info.methods[method] = Function(method, piece, self, info, _node=statement)
        return info

    def _add(self, info: ClassInfo) -> ClassInfo:
        self.classes[info.name] = info
        self._made.append(info)
        return info

    def resolve(self, qualified: str, lead: Lead = Lead.IMPORT) -> Function | ClassInfo | None:
        """The function or class of another file of the project that a dotted name stands for."""
        if self.project is None or "." not in qualified:
            return None
        if qualified not in self._resolved:
            self._resolved[qualified] = self.project.definition(qualified, self.source.path, lead)
        return _asked(self._resolved[qualified])

    def starred(self, name: str, lead: Lead = Lead.IMPORT) -> Function | ClassInfo | None:
        """The function or class of another file that a plain name stands for by way of `from module import *`."""
        if self.project is None or not self.star_imports or name in BUILTINS:
            return None
        key = f"*.{name}"
        if key not in self._resolved:
            self._resolved[key] = self.project.starred(self, name, lead)
        return _asked(self._resolved[key])

    def asked(self, found: T) -> T:
        """Take down that the running analysis has use for the file, and for something in it."""
        if self.project is not None and self.asked_in != self.project.analyses:
            self.asked_in = self.project.analyses
            self.project.asked[self.source.path] += 1
        return found

    def resolve_class(self, name: str, lead: Lead = Lead.BASE) -> ClassInfo | None:
        """The class of this file or project that a base class's name stands for."""
        found = self.find_class(name)
        if found is None and "." in name:
            elsewhere = self.resolve(name, lead)
            found = elsewhere if isinstance(elsewhere, ClassInfo) else None
        elif found is None and self.star_imports:
            elsewhere = self.starred(name, lead)
            found = elsewhere if isinstance(elsewhere, ClassInfo) else None
        return found

    def outline_of(self, piece: Piece) -> Outline:
        """The outline of a whole piece; empty where only libcst could read the file."""
        found = self._outlines.get(piece)
        if found is None:
            found = self._outlines[piece] = outline(piece.outline) if piece.outline is not None else Outline()
            piece.refuse_if_deeper(found.depth)
        return found

    def _outlines_in_class(self, piece: Piece) -> tuple[Outline, dict[str, Outline]]:
        """The outline of a class, and those of its methods by name."""
        found = self._class_outlines.get(piece)
        if found is None:
            found = self._class_outlines[piece] = _class_outlines(piece)
            piece.refuse_if_deeper(found[0].depth)
        return found

    def reread(self, piece: Piece) -> None:
        """The text of a function or class changed: summarise it anew."""
        self._outlines.pop(piece, None)
        self._class_outlines.pop(piece, None)
        if piece.kind == "def" and piece.name in self.functions:
            self.functions[piece.name].renew(self.outline_of(piece), piece.outline)
        elif piece.kind == "class" and piece.name in self.classes:
            cls = self.classes[piece.name]
            _, by_name = self._outlines_in_class(piece)
            cls._shows_layers.clear()
            cls.forget_bases()
            for method in cls.methods.values():
                method.renew(by_name[method.name], method.piece.outline)

    def forget(self, gone: Set[Program]) -> None:
        """Files that the project lets go of: what was found in them is to be looked for anew."""
        self._resolved = {
            name: found for name, found in self._resolved.items() if found is None or found.program not in gone
        }
        for cls in self._made:
            cls.forget_bases()

    def release(self) -> None:
        """Let go of all trees, without waiting for the garbage collector: functions and classes hold each other."""
        for cls in self._made:
            for method in (cls._methods or {}).values():
                method.piece.release()
            cls._methods = {}
            cls.forget_bases()
        for held in (self._made, self.classes, self.functions, self._outlines, self._resolved):
            held.clear()
        for piece in self.source.pieces:
            piece.release()

    def outlines(self) -> Iterator[Outline]:
        """The outlines of all pieces."""
        yield from map(self.summary, self.source.pieces)

    def summary(self, piece: Piece) -> Outline:
        """The outline of a piece, that of a class being put together from those of its parts."""
        return self._outlines_in_class(piece)[0] if piece.kind == "class" else self.outline_of(piece)

    def qualify(self, path: str) -> str:
        """A dotted source path with its first name replaced by what it was imported as."""
        first, dot, rest = path.partition(".")
        return self.imported.get(first, first) + dot + rest


def _asked(found: Function | ClassInfo | None) -> Function | ClassInfo | None:
    return found.program.asked(found) if found is not None else None


def _shows_layers(cls: ClassInfo, depth: int) -> bool:
    for ancestor in cls.ancestors():
        program = ancestor.program
        for path in sorted(ancestor.outline.called):  # the same files are read in each run
            if _is_layer(program, path) or any(_is_layer(program, inner) for inner in _called_by(program, path)):
                return True
            qualified = program.qualify(path)
            built = ancestor.program.resolve_class(path) or ancestor.program.resolve_class(qualified)
            if depth > 0 and built is not None and built is not cls and built.shows_layers_within(depth - 1):
                return True
    return False


def _is_layer(program: Program, path: str) -> bool:
    qualified = program.qualify(path)
    return program.contracts.is_module_class(qualified) and bool(modules.has_parameters(qualified))


def _called_by(program: Program, name: str) -> set[str]:
    """What a function of the file calls: `self.layers = make_layers(settings)`."""
    piece = program.piece(name)
    return program.outline_of(piece).called if piece is not None and piece.kind == "def" else set()


def _class_outlines(piece: Piece) -> tuple[Outline, dict[str, Outline]]:
    methods: dict[str, Outline] = {}
    if not isinstance(piece.outline, ast.ClassDef):
        return Outline(), methods
    whole = Outline()
    for part in ast.iter_child_nodes(piece.outline):
        found = outline(part)
        whole.merge(found)
        whole.nodes += found.nodes
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
            methods[part.name] = found
    return whole, methods


def _nothing(name: str) -> cst.FunctionDef:
    """What stands for a function that Python reads and libcst does not: nothing is known of it."""
    return cst.FunctionDef(cst.Name(name), cst.Parameters(), cst.SimpleStatementSuite([cst.Pass()]))


def outlined_name(node: ast.expr) -> str:
    """`expression_name` for the standard parser's nodes; of a call, the name of what is called."""
    while isinstance(node, ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return dotted(node)


def expression_name(node: cst.BaseExpression) -> str:
    """Dotted text of a name or attribute chain (subscripts dropped: `Generic[T]` is Generic), else ""."""
    names: list[str] = []
    while type(node) is not cst.Name:  # `isinstance` is slow on these classes where the answer is no
        if type(node) is cst.Attribute:
            names.append(node.attr.value)
        elif type(node) is not cst.Subscript:
            return ""
        node = node.value
    names.append(node.value)
    return ".".join(reversed(names))


def decorator_name(decorator: cst.Decorator) -> str:
    """Dotted name of a decorator, whether called or not."""
    node = decorator.decorator
    return expression_name(node.func if isinstance(node, cst.Call) else node)


def _dunder_all(statements: list[ast.stmt]) -> frozenset[str] | None:
    """The names in a plain `__all__`; None where there is none, or it is put together."""
    found: frozenset[str] | None = None
    for statement in statements:
        match statement:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=ast.List(elts=items) | ast.Tuple(elts=items)):
                if found is not None or not all(isinstance(item, ast.Constant) for item in items):
                    return None
                found = frozenset(str(item.value) for item in items if isinstance(item, ast.Constant))
            case ast.Assign(targets=[ast.Name(id="__all__")]) | ast.AugAssign(target=ast.Name(id="__all__")):
                return None
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="__all__")))):
                return None
    return found


def _is_empty_list(value: ast.expr) -> bool:
    match value:
        case ast.List(elts=[]) | ast.Call(func=ast.Name(id="list"), args=[], keywords=[]):
            return True
    return False
