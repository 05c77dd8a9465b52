"""TML804 module-in-cache."""

from __future__ import annotations

from torchmemlint.findings import Finding
from torchmemlint.flow.fact.owners import Caching
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told


class ModuleInCache(TellingRule):
    """The cache of a function holds every network that the function was given."""

    def tell(self, told: Told) -> Finding:
        """Say which networks the cache holds."""
        caching = told.about(Caching)
        cache = told.text.lstrip("@").partition("(")[0].rpartition(".")[2]
        holds = ", with the network in it," if caching.holds else ""
        message = f"`{cache}` keeps every `{caching.parameter}`{holds} that `{caching.function}` was ever called with"
        title = f"Pass `{caching.function}` only what its result depends on, not the network"
        if caching.method:
            kind = f"object{holds}" if caching.holds else "network"
            message = f"`{cache}` keeps every {kind} that `{caching.function}` was ever called on"
            title = "Keep the result on the object: `functools.cached_property`, or an attribute"
        return told.finding(
            self,
            message,
            [
                told.here("the arguments are the key of the result, so the cache holds them"),
                *told.links(told.case.graphs, "created here"),
                *told.links(told.case.calls, "passed to the function here"),
                *told.around("another one is created in each iteration"),
            ],
            hint=title,
        )
