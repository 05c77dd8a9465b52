"""What the imported names of one file stand for: for rules that ask no more than that."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from torchmemlint.flow.names import suites
from torchmemlint.knowledge.contracts import Contracts, contracts
from torchmemlint.syntax.outline import Outline, imports, outline
from torchmemlint.syntax.source_module import Piece, SourceModule

if TYPE_CHECKING:
    from torchmemlint.flow.project import Project

_LOADING = ("torch.utils.data", "torchvision.")  # what is of use without torch's tensors
# Frameworks whose training loops are spelled like torch's, with other memory behind them.
OTHER_FRAMEWORKS = frozenset("chainer jittor megengine mindspore mxnet oneflow paddle tinygrad".split())


class Program:
    """The imported names of one file, which may be a part of a project."""

    def __init__(self, source: SourceModule, project: Project | None = None, promised: Contracts | None = None) -> None:
        self.source = source
        self.project = project
        self.contracts = promised or (project.contracts if project is not None else contracts())
        self.imported = dict(imports([piece.outline for piece in source.pieces if piece.outline is not None]))
        self._pieces: dict[str, Piece] = {piece.name: piece for piece in source.pieces if piece.name}
        self._outlines: dict[Piece, Outline] = {}

    @cached_property
    def is_of_another_framework(self) -> bool:
        """Does the file train with another framework, and never import torch? Its `backward` is no business of ours."""
        roots = {imported.split(".")[0] for imported in self.imported.values()}
        if not self.imported.get("torch", "torch").endswith("torch"):
            return True  # `import torchmlx as torch`
        if roots.isdisjoint(OTHER_FRAMEWORKS):
            return self._differentiates_by_itself
        return not any(words in self.source.text for words in ("import torch", "from torch"))

    @property
    def _differentiates_by_itself(self) -> bool:
        """Does it import a package of the project that has a `Tensor` of its own, and of torch no more than loaders?"""
        imports = {path for path in self.imported.values() if not path.startswith(_LOADING)}
        if self.project is None or any(path.split(".")[0] == "torch" for path in imports):
            return False
        packages = {"." * (len(path) - len(path.lstrip("."))) + path.lstrip(".").split(".")[0] for path in imports}
        return self.project.has_own_tensors(packages, self.source.path)

    @cached_property
    def is_test(self) -> bool:
        """A module of tests: what it computes is small, and whether it has a graph may be its subject."""
        return suites.is_of_tests(self.within, self.source.text, self.imported.values())

    @property
    def within(self) -> Path:
        """Where the file lies in its project."""
        return suites.within(self.source.path, None if self.project is None else self.project.root)

    def defines(self, name: str) -> bool:
        """Is this a function or class of the top level?"""
        return name in self._pieces

    def outline_of(self, piece: Piece) -> Outline:
        """The outline of a piece; empty of a part of one."""
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
