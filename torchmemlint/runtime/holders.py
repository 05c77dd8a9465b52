"""What keeps storages alive, as data. Knows nothing of torch; `retention.py` finds it out."""

from __future__ import annotations

import threading
from dataclasses import field

from torchmemlint.immutable import immutable
from torchmemlint.runtime.ledger import Site


@immutable()
class Holder:
    """What keeps storages alive. Bytes and storages are those at the look; each storage belongs to one holder.

    `name` is how the source gets at it (`self.history`, `total`); `kind` what that is (`local`, `global`,
    `attribute`, `class attribute`, `closure`, `default`, `cache`, `generator`, `library`, `cycle`, `unknown`), with
    `function` for locals and closures and `of_type` for attributes. `type` is its own type, `filled` the statements
    that put something into it, likeliest first, `graph_lines` the lines whose operations made the nodes that hold
    bytes. `bound` is the most elements or results that it keeps, None where it has no bound. `shown` is what tensors
    show of the `direct` bytes: less, where they are views that keep whole storages. `unfindable` counts results of a
    cache whose key nothing else has.
    """

    name: str
    kind: str
    type: str
    site: Site
    function: str
    of_type: str
    filled: tuple[Site, ...]
    carried: bool  # its new value is made from its old one
    nbytes: int
    storages: int
    direct: int
    graph: int
    graph_lines: tuple[tuple[Site, int], ...] = ()
    bound: int | None = None
    length: int | None = None
    shown: int = 0
    unfindable: int = 0

    @property
    def how(self) -> str:
        """`direct`, `graph`, or `direct and graph`."""
        return " and ".join(word for word, nbytes in (("direct", self.direct), ("graph", self.graph)) if nbytes)


@immutable()
class Look:
    """One look: which holder keeps which records, at one event."""

    event: int
    device: str
    holders: tuple[Holder, ...]  # most bytes first
    holder_of: dict[int, int]  # a record's number -> its holder's place in `holders`
    unreached: int  # bytes that no holder was found for
    visited: int  # objects
    cut: bool  # whether the look ended at a limit, so that bytes may be missing
    by_graph: frozenset[int] = frozenset()  # the records that only a graph keeps
    thread: int = field(default_factory=threading.get_ident)  # the one that looked
