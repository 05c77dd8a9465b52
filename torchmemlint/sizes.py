"""Bytes as people write them: `1GiB`, `512 MB`, `48.0 MiB`."""

from __future__ import annotations

import re

_UNITS = {
    "": 1,
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}
_WRITTEN = re.compile(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*([a-z]*)\s*", re.IGNORECASE)


def parse_size(text: str | int) -> int:
    """The bytes that a text means: `1GiB`, `1.5 MB`, `512`; whole bytes, rounded down.

    Decimal and binary units are told apart as the standard IEC 80000-13 does (1 MB is 10⁶ bytes, 1 MiB 2²⁰).
    Raises ValueError for anything else.
    """
    if isinstance(text, int):
        if text < 0:
            raise ValueError(f"a size cannot be negative: {text}")
        return text
    written = _WRITTEN.fullmatch(text)
    unit = _UNITS.get(written[2].lower()) if written else None
    if written is None or unit is None:
        raise ValueError(f"not a size: {text!r} (write it like 1GiB, 512 MB or 2048)")
    return int(float(written[1]) * unit)


def format_size(nbytes: float) -> str:
    """Bytes for people: exact below 1 KiB, else with one digit after the point and a binary unit."""
    sign = "-" if nbytes < 0 else ""
    size = abs(nbytes)
    if round(size) < 1024:
        return f"{sign}{round(size)} B"
    for unit in ("KiB", "MiB", "GiB"):
        size /= 1024
        if round(size, 1) < 1024:
            return f"{sign}{size:.1f} {unit}"
    return f"{sign}{size / 1024:.1f} TiB"
