"""What grows from turn to turn, where it is kept, and which lines made it.

The *leaking line* is the statement that keeps what should have gone: `history.append(out)`, `total += loss`. The lines
that allocated the bytes stand beside it; often they are somewhere else, in the model's forward.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from torchmemlint.immutable import immutable
from torchmemlint.runtime.holders import Holder
from torchmemlint.runtime.kinds import Kind
from torchmemlint.runtime.ledger import Site
from torchmemlint.runtime.survivors import Accrual


@immutable()
class Leak:
    """Bytes that pile up, with what keeps them.

    `growth` says how much each turn of which series adds; `block_bytes` the same in the blocks that the allocator
    hands out, where the device has such an allocator. `made` are the lines that allocated the bytes, with the bytes
    per turn. `bounded` is set for what fills up to a bound that the holder has by itself, as a deque with a maxlen.
    `besides` is what the same holder gets in other loops. `stays` is set for what a loop piles up each time that it is
    entered, and that goes when the loop has been left: the bytes of a turn that do not go then, because others keep
    them, too. `gathered` is set for what is collected without graphs and used later (see `uses.py`).
    """

    growth: Accrual
    holder: Holder | None
    made: tuple[tuple[Site, float], ...]
    kinds: tuple[tuple[Kind, int], ...]
    retained: int  # bytes alive at the look
    block_bytes: float | None = None
    bounded: bool = False
    also: tuple[Holder, ...] = ()  # further holders that the same line fills
    look: int = 0  # the event of the look
    besides: tuple[Accrual, ...] = ()
    stays: float | None = None
    gathered: bool = False
    on_host: bool = False  # in the host's memory, of a program that uses a GPU

    @property
    def is_growth(self) -> bool:
        """Whether it is a leak: neither bounded, nor gathered to be used."""
        return not self.bounded and not self.gathered

    @property
    def bytes_per_turn(self) -> float:
        """What each turn adds."""
        return self.growth.bytes_per_turn

    @property
    def kept(self) -> Site | None:
        """The leaking line: where it is kept. None where the source does not tell."""
        return self.holder.filled[0] if self.holder is not None and self.holder.filled else None

    @property
    def line(self) -> Site:
        """The leaking line, or the line that allocates most of it."""
        return self.kept or self.made[0][0]


def merged(leaks: Iterable[Leak], threads: Mapping[int, int]) -> list[Leak]:
    """With what is kept by the same line taken together, and without what a later look has told already.

    `threads` tells by a look's event which thread looked. What a thread keeps is gone when it has ended, so that a
    later look of another one has not told of it.
    """
    result: dict[tuple[Site, str], Leak] = {}
    for leak in leaks:
        key = (leak.line, leak.growth.series)
        before = result.get(key)
        if before is None:
            result[key] = leak
        elif leak.kept is not None and (leak.look == before.look or threads.get(leak.look) != threads.get(before.look)):
            result[key] = _together(before, leak)
    return list(result.values())


def _together(one: Leak, other: Leak) -> Leak:
    made = Counter(dict(one.made))
    made.update(dict(other.made))
    kinds = Counter(dict(one.kinds))
    kinds.update(dict(other.kinds))
    growth = replace(
        one.growth,
        bytes_per_turn=one.growth.bytes_per_turn + other.growth.bytes_per_turn,
        storages_per_turn=one.growth.storages_per_turn + other.growth.storages_per_turn,
        steady=one.growth.steady and other.growth.steady,
    )
    blocks = None if one.block_bytes is None or other.block_bytes is None else one.block_bytes + other.block_bytes
    return replace(
        one,
        growth=growth,
        also=(*one.also, *((other.holder,) if other.holder is not None else ())),
        made=tuple(made.most_common()),
        kinds=tuple(kinds.most_common()),
        retained=one.retained + other.retained,
        block_bytes=blocks,
        bounded=one.bounded and other.bounded,
        gathered=one.gathered and other.gathered,
    )
