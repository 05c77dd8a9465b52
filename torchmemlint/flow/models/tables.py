"""Tables of Hugging Face's `datasets`: what their methods run for every row, and what becomes of what that gives.

Source: datasets 3.6, `arrow_dataset.py` (`map` and `filter` call the function at once, in the mode of who calls them)
and `features/features.py` (`_cast_to_python_objects`: a tensor is detached and becomes an array).
"""

from __future__ import annotations

from torchmemlint.flow.domain.frame import CallSite
from torchmemlint.flow.domain.manners import Reading
from torchmemlint.flow.domain.memory import sources_of
from torchmemlint.flow.domain.refs import Object
from torchmemlint.flow.domain.values import Value
from torchmemlint.flow.models import containers
from torchmemlint.knowledge import data_sets


def method(site: CallSite, target: Object, name: str) -> Value | None:
    """Return the value of a method of a table that gives another one of the same items; None for other objects."""
    if not str(target.about).startswith("datasets.") or name not in data_sets.DERIVING:
        return None
    table = Value(target.alone, open=True)
    function = site.arguments.get(0, "function") if name in data_sets.RUNNING else None
    if function is not None and function.refs:
        given = site.consume(containers.lazy(site, "map", [function, table]))
        site.frame.read(sources_of(site.state, [given]), Reading.DETACHED)
    return table
