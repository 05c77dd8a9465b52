"""Values that are not in the repository: a file of further entries for the tables."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

from . import forms, tables
from .forms import Cut, Loop, indented


def private_values(path: Path) -> dict[str, list[str]]:
    """Run the file, which adds entries to the tables; the values that are new, by dimension.

    The file sees the tables and the classes of their entries as `T`. A loop may be a plain function of the lines of an
    iteration, and a cut a plain text over `{v}`.
    """
    before = tables.dimensions()
    known = {name: value for module in (forms, tables) for name, value in vars(module).items() if name[0] != "_"}
    scope = {"T": SimpleNamespace(**known, ind=indented), "__name__": "private"}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec", dont_inherit=True), scope)
    for name, loop in tables.LOOP.items():
        if not isinstance(loop, Loop):
            tables.LOOP[name] = Loop(loop)
    for name, cut in tables.CUT.items():
        if isinstance(cut, str):
            tables.CUT[name] = Cut(cut)
    return {name: [one for one in values if one not in before[name]] for name, values in tables.dimensions().items()}
