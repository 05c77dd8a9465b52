"""What the scores of an attention go through on the way from their product to the weighted sum of the values."""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterator
from dataclasses import dataclass, field

from torchmemlint.flow.program import ClassInfo, Program
from torchmemlint.immutable import immutable

Branch = tuple[ast.AST, int]  # an `if` and which of its ways, or a loop
Path = tuple[Branch, ...]


class Kind(enum.Enum):
    """What a step does."""

    PRODUCT = "product"  # queries times keys: the scores
    SCALE = "scale"  # times or divided by a number
    ADD = "add"  # an additive mask or bias
    FILL = "fill"  # masked_fill and its kin
    SOFTMAX = "softmax"  # from here on they are weights
    DROPOUT = "dropout"
    CAST = "cast"  # another dtype, or contiguous
    VIEW = "view"  # another shape, the last axis kept
    SWAP = "swap"  # the last two axes change places
    CHOICE = "choice"  # two ways meet


@immutable(eq=False)
class Step:
    """One operation on scores or weights."""

    kind: Kind
    node: ast.expr
    operand: ast.expr | None = None  # the factor, mask, condition, or dropout's probability
    other: ast.expr | None = None  # the value that fills; what says whether dropout is on; the dtype of a softmax
    negated: bool = False  # divided by; subtracted; kept where the condition holds
    dim: ast.expr | None = None  # of a softmax
    plain: bool = True  # can it be said in arguments of the fused function?


@immutable(eq=False)
class Product:
    """Queries times keys, however it is spelled."""

    node: ast.expr
    left: ast.expr
    right: ast.expr
    spelling: str  # "@", "matmul", "bmm", "baddbmm", "einsum"
    subscripts: tuple[str, str, str] | None = None  # of einsum: the queries', the keys' and the scores'
    names: Names | None = None  # what the names in it stand for there


@dataclass(eq=False, slots=True)
class Stage:
    """Scores or weights as one step leaves them."""

    step: Step
    path: Path
    statement: ast.stmt
    weights: bool  # after the softmax
    product: Product | None = None  # of the first stage
    parents: tuple[Stage, ...] = ()
    swapped: bool = False  # the last two axes have changed places
    mixed: bool = False  # on some ways it is something else
    reads: list[Path] = field(default_factory=list)
    escaped: bool = False  # used for something else as well
    looked_at: bool = False  # its shape, dtype or device was asked for

    def past(self) -> Iterator[Stage]:
        """This stage and all before it, each once."""
        seen: set[int] = set()
        pending = [self]
        while pending:
            stage = pending.pop()
            if id(stage) not in seen:
                seen.add(id(stage))
                yield stage
                pending += stage.parents

    def is_used_once(self) -> bool:
        """Is it, and everything before it, read by nothing but the steps that lead on?"""
        return all(not stage.escaped and _exclusive(stage.reads) for stage in self.past())


@immutable(eq=False)
class Definition:
    """What a local name was last given, and what the names in that stood for."""

    value: ast.expr
    index: int | None  # which part of it, where it was taken apart; None: all of it
    count: int  # how many parts
    before: Names


Names = dict[str, Definition | None]  # None: it depends on the way


@immutable(eq=False)
class Attention:
    """An attention whose weights are made for nothing but the weighted sum."""

    program: Program
    cls: ClassInfo | None
    function: ast.FunctionDef | ast.AsyncFunctionDef
    product: Product
    weights: Stage  # as they meet the values
    value: ast.expr
    node: ast.expr  # weights times values
    spelling: str
    subscripts: tuple[str, str, str] | None  # of einsum: the weights', the values' and the result's
    statement: ast.stmt
    path: Path


def _exclusive(reads: list[Path]) -> bool:
    """Does no way through the function come by two of these places?"""
    return all(
        any(one == other and way != branch for one, way in first for other, branch in second)
        for index, first in enumerate(reads)
        for second in reads[:index]
    )
