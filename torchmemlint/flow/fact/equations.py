"""Equations: the subscripts of an `einsum`, in torch's notation, however they are written."""

from __future__ import annotations

import string

from torchmemlint.flow.fact.formulas import Formula
from torchmemlint.flow.fact.operands import Operation
from torchmemlint.knowledge import torch_api


def equation(formula: Formula, einsum: Operation) -> str | None:
    """The equation of an einsum, with one letter for each axis and no spaces; None where it is not known.

    Names of einops become letters in the order in which they come: "... query d, ... key d -> ... query key" is
    "...ab,...cb->...ac".
    """
    written = formula.constant(einsum.operands[0]) if einsum.operands else None
    if not isinstance(written, str):
        return None
    if einsum.qualified not in torch_api.NAMED_AXES:
        return written.replace(" ", "")
    letters: dict[str, str] = {}
    for name in written.replace("->", " ").replace(",", " ").replace("...", " ").split():
        if not name.isidentifier() or len(letters) == len(string.ascii_letters):
            return None
        letters.setdefault(name, string.ascii_letters[len(letters)])
    parts = written.replace("->", " -> ").replace(",", " , ").replace("...", " ... ").split()
    return "".join(letters.get(part, part) for part in parts)
