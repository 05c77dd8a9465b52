"""TML804 module-in-cache."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.findings import Applicability, Evidence, Finding, Fix, Severity
from torchmemlint.flow.fact.owners import Caching
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told


class ModuleInCache(TellingRule):
    """The cache of a function holds every network that the function was given."""

    def tell(self, told: Told) -> Finding:
        """Say which networks the cache holds."""
        caching = told.about(Caching)
        cache = told.text.lstrip("@").partition("(")[0].rpartition(".")[2]
        what = (
            f"every `{caching.parameter}`, with the network in it," if caching.holds else f"every `{caching.parameter}`"
        )
        message = f"`{cache}` keeps {what} that `{caching.function}` was ever called with"
        title = f"Pass `{caching.function}` only what its result depends on, not the network"
        if caching.method:
            kind = "object, with the network in it," if caching.holds else "network"
            message = f"`{cache}` keeps every {kind} that `{caching.function}` was ever called on"
            title = "Keep the result on the object: `functools.cached_property`, or an attribute"
        return told.finding(
            self,
            message,
            _evidence(told),
            severity=Severity.ADVICE if told.case.advice else Severity.WARNING,
            fix=Fix(title, Applicability.HINT),
        )


def _evidence(told: Told) -> Iterator[Evidence]:
    yield told.link(told.case.place, "the arguments are the key of the result, so the cache holds them")
    for made in told.case.graphs:
        yield told.link(made, "created here")
    for call in told.case.calls:
        yield told.link(call, "passed to the function here")
    yield from told.around("another one is created in each iteration")
