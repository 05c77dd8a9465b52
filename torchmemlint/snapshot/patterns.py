"""What runs of a pickle's opcodes look like that a memory snapshot consists of: read at once, they are read fast."""

from __future__ import annotations

import re
from typing import Any

_LONGEST_TEXT = 64
_MEMO = rb"\x94|q.|r.{4}"
REFERENCE = rb"(?:h.|j.{4})"
_RUN = rb"%b+" % REFERENCE
INTEGERS = rb"K.|M..|J.{4}|\x8a(?:" + b"|".join(b"%b.{%d}" % (re.escape(bytes([n])), n) for n in range(10)) + rb")"
_TEXTS = rb"\x8c(?:" + b"|".join(b"%b.{%d}" % (re.escape(bytes([n])), n) for n in range(_LONGEST_TEXT)) + rb")"
_VALUE = rb"((?:%b|%b|[N\x88\x89])(?:(?:%b)\x86)?)(%b)?" % (INTEGERS, _TEXTS, INTEGERS, _MEMO)
_PAIRS = 8
FLAT = re.compile(
    rb"\}(%b)?\((%b)%b" % (_MEMO, _RUN, _VALUE)
    + b"".join(rb"(?:(%b)%b" % (_RUN, _VALUE) for _ in range(_PAIRS - 1))
    + b")?" * (_PAIRS - 1)
    + rb"(?:u|(%b)(?:(\])(%b)?(\()?|(%b)u))" % (_RUN, _MEMO, REFERENCE),
    re.DOTALL,
)
"""A dictionary of numbers and short texts, whose keys were all written before; last, a list of frames may begin."""
REST = re.compile(rb"(%b)eu" % _RUN, re.DOTALL)
RUNS, MEMOS = (slice(first, 3 * _PAIRS + 2, 3) for first in (1, 3))
LAST = 3 * _PAIRS + 1


def value_of(data: bytes) -> Any:
    """What one or, for a pair, two opcodes stand for."""
    code = data[0]
    if code == 0x8A:  # LONG1
        end = 2 + data[1]
        value: Any = int.from_bytes(data[2:end], "little", signed=True)
    elif code == 0x4B:  # BININT1
        value, end = data[1], 2
    elif code == 0x4D:  # BININT2
        value, end = data[1] | data[2] << 8, 3
    elif code == 0x4A:  # BININT
        value, end = int.from_bytes(data[1:5], "little", signed=True), 5
    elif code == 0x8C:  # SHORT_BINUNICODE
        end = 2 + data[1]
        value = data[2:end].decode("utf-8", "surrogatepass")
    else:
        value, end = _CONSTANTS[code], 1
    return value if end == len(data) else (value, value_of(data[end:-1]))


_CONSTANTS = {0x4E: None, 0x88: True, 0x89: False}
