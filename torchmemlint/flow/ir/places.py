"""Where operations read and write, and what they are given."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from torchmemlint.immutable import immutable

Temp = int
NO_TEMP: Temp = -1  # an operand that is not there


class Scope(enum.Enum):
    """Where a name of a function lives."""

    LOCAL = "local"  # in the call
    CELL = "cell"  # in a call that nested functions outlive or share: its frame is an object
    GLOBAL = "global"  # in the module
    BUILTIN = "builtin"  # nowhere in the file


@dataclass(slots=True, eq=False, repr=False)
class Name:
    """A name with its scope: resolved once the whole file is lowered, so names are shared by the operations."""

    text: str
    scope: Scope = Scope.LOCAL
    hops: int = 0  # CELL: how many functions further out its frame belongs


@dataclass(slots=True, eq=False, repr=False)
class AttributePlace:
    """`base.name`."""

    base: Temp
    name: str


@dataclass(slots=True, eq=False, repr=False)
class ItemPlace:
    """`base[key]`."""

    base: Temp
    key: Key


Place = Name | AttributePlace | ItemPlace


@immutable()
class ConstantKey:
    """`x[0]`, `x["loss"]`, `x[-1]`."""

    value: int | str | bool | None


@immutable()
class ComputedKey:
    """`x[i]`."""

    temp: Temp


@immutable()
class SliceKey:
    """`x[a:b]`, `x[:, 0]`, `x[..., 1]`: a part, perhaps a view. `parts` are the temporaries of the indices.

    `start`: how many items from the front are left out, as far as that is written out. `single`: it is just `a:b`,
    which a list has, too. `limited`: it is that, and gives at most so many items of a list, however long that is.
    `put`: what it gives becomes an attribute or an item at once. `layout`: for each index `:`, `+` (None, a new
    dimension), `.` (an ellipsis), `*` (starred), `0` (the first or the last), `#` (another).
    """

    parts: tuple[Temp, ...] = ()
    start: int = 0
    single: bool = False
    limited: bool = field(default=False, compare=False)
    put: bool = field(default=False, compare=False)
    layout: str = field(default="", compare=False)

    @property
    def dimensions(self) -> int:
        """How many dimensions are written out that there must be."""
        return sum(sign in ":0#" for sign in self.layout)


SOME_PART = SliceKey((NO_TEMP,), limited=True)  # of which no more is known
Key = ConstantKey | ComputedKey | SliceKey


class Spread(enum.Enum):
    """How an argument or item is given."""

    PLAIN = ""
    NAMED = "="
    STAR = "*"
    STARS = "**"


@immutable()
class Argument:
    """One actual argument."""

    spread: Spread
    name: str  # of NAMED, else empty
    temp: Temp


@immutable()
class Entry:
    """One item of a list, tuple, set or dict that is written out. `key` is None but in dicts."""

    spread: Spread  # PLAIN, STAR (`*x`) or STARS (`**x`)
    key: Key | None
    temp: Temp
