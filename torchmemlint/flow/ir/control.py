"""Operations that decide what is run next."""

from __future__ import annotations

from dataclasses import dataclass

from torchmemlint.flow.ir.ops import Op
from torchmemlint.flow.ir.places import Name, Temp
from torchmemlint.immutable import immutable


@immutable()
class Narrowing:
    """What a test says about a name, as `isinstance(x, torch.Tensor)`, `x is None` or `hasattr(x, "item")` do.

    `key` is the attribute or constant key where what the name holds is tested, as in `self.state is None`. `kind` is
    "tensor", "module" or "none"; `holds` is whether the first branch is the one where it is so. A test may tell less:
    `if x:` says nothing of x in its second branch, `x is None or y` nothing in its first.
    """

    name: Name | None  # None: of the expression that a call asks of, where that is no place
    key: str | int | None
    kind: str
    holds: bool
    in_then: bool = True  # is it known in the first branch?
    in_orelse: bool = True  # is the opposite known in the second?


@dataclass(slots=True, eq=False, repr=False)
class If(Op):
    """One of two blocks. `narrowings` are what the test says in `then`, and its opposite in `orelse`.

    `often`: the test says that `then` is run once in a few times.
    """

    test: Temp
    then: list[Op]
    orelse: list[Op]
    narrowings: tuple[Narrowing, ...]
    often: bool = False


@dataclass(slots=True, eq=False, repr=False)
class For(Op):
    """The body for each item of `source`; its first operations bind `item` to the targets.

    `writes` are the texts of the local names that the body binds, nested blocks included: each gets a phi at the head.
    """

    source: Temp
    item: Temp
    body: list[Op]
    orelse: list[Op]
    writes: frozenset[str]
    comprehension: bool


@dataclass(slots=True, eq=False, repr=False)
class While(Op):
    """`head` computes `test` before each round."""

    head: list[Op]
    test: Temp
    body: list[Op]
    orelse: list[Op]
    writes: frozenset[str]


@dataclass(slots=True, eq=False, repr=False)
class Handler:
    """One `except`. Its body begins with the operations that bind `name`."""

    body: list[Op]
    name: Name | None
    types: tuple[str, ...]  # dotted, as written
    caught: Temp  # the exception


@dataclass(slots=True, eq=False, repr=False)
class Try(Op):
    """`try`, with `orelse` and `final` empty where they are not written."""

    body: list[Op]
    handlers: list[Handler]
    orelse: list[Op]
    final: list[Op]


@dataclass(slots=True, eq=False, repr=False)
class With(Op):
    """The body within contexts; its first operations are an `Enter` for each and the binding of what they give."""

    contexts: tuple[Temp, ...]
    body: list[Op]


@dataclass(slots=True, eq=False, repr=False)
class Enter(Op):
    """`dst` becomes what `as` binds."""

    dst: Temp
    context: Temp


@dataclass(slots=True, eq=False, repr=False)
class Return(Op):
    """`src` may be NO_TEMP."""

    src: Temp


@dataclass(slots=True, eq=False, repr=False)
class Yield(Op):
    """`src` may be NO_TEMP; `dst` is what is sent in. `many` is `yield from`."""

    dst: Temp
    src: Temp
    many: bool


@dataclass(slots=True, eq=False, repr=False)
class Await(Op):
    """`dst = await src`."""

    dst: Temp
    src: Temp


@dataclass(slots=True, eq=False, repr=False)
class Break(Op):
    """Leaves the loop."""


@dataclass(slots=True, eq=False, repr=False)
class Continue(Op):
    """Goes to the loop's head."""


@dataclass(slots=True, eq=False, repr=False)
class Raise(Op):
    """Leaves the function, or goes to a handler. `src` may be NO_TEMP; `carried`: what the exception is made of."""

    src: Temp
    carried: tuple[Temp, ...] = ()


@dataclass(slots=True, eq=False, repr=False)
class Check(Op):
    """`assert`: the test is read as a value. A program goes on only where it holds."""

    test: Temp
    narrowings: tuple[Narrowing, ...]
