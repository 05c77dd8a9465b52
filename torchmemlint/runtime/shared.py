"""What goes on a GPU from one process to another. Knows nothing of torch.

A real GPU keeps such bytes in the process that made them until the receiver lets go. A simulation counts them where
they arrive, so it cannot tell whether they pile up.
"""

from __future__ import annotations

from collections import Counter

from torchmemlint.immutable import immutable
from torchmemlint.runtime.ledger import Ledger, Site


@immutable()
class Shared:
    """What a line made for another process, or received from one: the storages, and their bytes, of the whole run."""

    line: Site
    nbytes: int
    storages: int


def shared_by_line(ledger: Ledger) -> list[Shared]:
    """What went to other processes or came from them, by line, most first."""
    nbytes: Counter[Site] = Counter()
    storages: Counter[Site] = Counter()
    for index in ledger.shared:
        nbytes[ledger.site(index)] += ledger.nbytes(index)
        storages[ledger.site(index)] += 1
    return [Shared(line, total, storages[line]) for line, total in nbytes.most_common()]
