"""GitHub's hash of a line, by which code scanning knows an alert again when the lines around it have moved.

The action that uploads SARIF works it out where it is missing, and complains where it is another, so it is this one:
a polynomial, in 64 bits, of the hundred characters that begin with the line, blanks left out; after the colon, the
how-many-eth line with this hash it is. What is uploaded by other ways has it from here.
"""

from __future__ import annotations

import array
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

_LENGTH = 100
_FACTOR = 37
_MASK = (1 << 64) - 1
_BEYOND = pow(_FACTOR, _LENGTH, 1 << 64)
_UTF_16 = "utf-16-le" if sys.byteorder == "little" else "utf-16-be"
_END = 0xFFFF  # stands for the end of the file
_WITHOUT_BLANKS = str.maketrans("", "", "\t ")


def line_hashes(lines: Sequence[str]) -> list[str]:
    """The hashes of a file's lines, given without their newlines; a newline at the end begins an empty one."""
    starts: list[int] = []
    units = array.array("H")  # as in UTF-16
    for line in lines:
        starts.append(len(units))
        units.frombytes(f"{line}\n".translate(_WITHOUT_BLANKS).encode(_UTF_16, "surrogatepass"))
    units[-1] = _END
    units.extend([0] * _LENGTH)
    values = list(accumulate(units, lambda value, unit: (_FACTOR * value + unit) & _MASK, initial=0))
    counts: Counter[int] = Counter()
    found: list[str] = []
    for start in starts:
        value = (values[start + _LENGTH] - _BEYOND * values[start]) & _MASK
        counts[value] += 1
        found.append(f"{value:x}:{counts[value]}")
    return found
