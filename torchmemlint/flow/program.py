"""What the names of one file stand for, and the classes that it defines: for rules that ask no more than that."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from torchmemlint.flow.names import suites
from torchmemlint.knowledge.contracts import Contracts, contracts
from torchmemlint.syntax.outline import Outline, dotted, imports, outline
from torchmemlint.syntax.source_module import Piece, SourceModule

if TYPE_CHECKING:
    from torchmemlint.flow.project import Project

_LOADING = ("torch.utils.data", "torchvision.")  # what is of use without torch's tensors
# Frameworks whose training loops are spelled like torch's, with other memory behind them.
_OTHER_FRAMEWORKS = frozenset("chainer jittor megengine mindspore mxnet oneflow paddle tinygrad".split())


@dataclass(eq=False, slots=True, repr=False)
class ClassInfo:
    """A class of a file's top level."""

    name: str
    node: ast.ClassDef
    program: Program

    def __repr__(self) -> str:
        return f"ClassInfo({self.name})"

    @property
    def bases(self) -> tuple[str, ...]:
        """The qualified names of its bases, or plain names of classes of this file."""
        return tuple(self.program.qualify(text) for base in self.node.bases if (text := _name_of(base)))

    @property
    def methods(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        """Its own methods."""
        return (one for one in self.node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef))


class Program:
    """The classes and imported names of one file, whose imports may lead to other files of a project."""

    def __init__(self, source: SourceModule, project: Project | None = None, promised: Contracts | None = None) -> None:
        self.source = source
        self.project = project
        self.contracts = promised or (project.contracts if project is not None else contracts())
        self.imported = dict(imports([piece.outline for piece in source.pieces if piece.outline is not None]))
        self._pieces: dict[str, Piece] = {piece.name: piece for piece in source.pieces if piece.name}
        self._outlines: dict[Piece, Outline] = {}
        self._classes: dict[str, ClassInfo] = {}

    @cached_property
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
        found = [cls for package in sorted(packages) if (cls := self.resolve_class(f"{package}.Tensor")) is not None]
        return any(not cls.bases and any(one.name == "backward" for one in cls.methods) for cls in found)

    @cached_property
    def is_test(self) -> bool:
        """A module of tests: what it computes is small, and whether it has a graph may be its subject."""
        return suites.is_of_tests(self.source.path, self.source.text, self.imported.values())

    def defines(self, name: str) -> bool:
        """Is this a function or class of the top level?"""
        return name in self._pieces

    def find_class(self, name: str) -> ClassInfo | None:
        """A top-level class of this file."""
        piece = self._pieces.get(name)
        if name not in self._classes and piece is not None and isinstance(piece.outline, ast.ClassDef):
            self._classes[name] = ClassInfo(name, piece.outline, self)
        return self._classes.get(name)

    def resolve_class(self, name: str) -> ClassInfo | None:
        """The class of this file or its project that a qualified name stands for."""
        found = self.find_class(name)
        if found is None and self.project is not None and "." in name:
            return self.project.find_class(name, self.source.path)
        return found

    def outline_of(self, piece: Piece) -> Outline:
        """The outline of a piece; empty where only libcst could read the file."""
        if piece not in self._outlines:
            self._outlines[piece] = outline(piece.outline) if piece.outline is not None else Outline()
        return self._outlines[piece]

    def outlines(self) -> Iterator[Outline]:
        """The outlines of all pieces."""
        return map(self.outline_of, self.source.pieces)

    def qualify(self, path: str) -> str:
        """A dotted source path with its first name replaced by what it was imported as."""
        first, dot, rest = path.partition(".")
        return self.imported.get(first, first) + dot + rest


def _name_of(node: ast.expr) -> str:
    """The dotted name of a base class; of `Generic[T]` and `base(...)`, that of what is indexed or called."""
    while isinstance(node, ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return dotted(node)
