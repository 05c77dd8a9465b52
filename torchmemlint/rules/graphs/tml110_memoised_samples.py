"""TML110 memoised-samples."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.findings import Applicability, Evidence, Finding, Fix, Severity
from torchmemlint.flow.fact.details import Memo
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told


class MemoisedSamples(TellingRule):
    """A data set keeps every sample that was ever asked for."""

    def tell(self, told: Told) -> Finding:
        """Say what keeps the samples."""
        memo, place = told.about(Memo), told.case.place
        if memo.attribute:
            message = f"`{memo.cls}.{memo.attribute}` keeps every sample"
            title = "Remove the cache, or fill it before the workers start"
        else:
            name = told.text_of(place).lstrip("@").partition("(")[0]
            message = f"`{name}` keeps every sample of `{memo.cls}`"
            title = "Remove the cache, or limit its size"
        return told.finding(
            self,
            message + (_in_vain(memo) if memo.loader is not None else ""),
            _evidence(told, memo),
            severity=Severity.ADVICE if told.case.advice else Severity.WARNING,
            fix=Fix(title, Applicability.HINT),
        )


def _evidence(told: Told, memo: Memo) -> Iterator[Evidence]:
    if memo.made is not None:
        yield told.link(memo.made, "the cache is empty when the workers start")
    if not memo.attribute:
        yield told.link(told.case.place, "this decorator keeps the result of every call")
    if memo.at is not None:
        yield told.link(memo.at, "each sample is stored here, and nothing removes it")
    if memo.loader is not None:
        yield told.link(memo.loader, "its workers end with each epoch, in which each sample is loaded once")


def _in_vain(memo: Memo) -> str:
    workers = "each worker" if memo.workers is None else f"each of {memo.workers} workers"
    return f" in {'a worker' if memo.workers == 1 else workers} for one epoch: the cache is never hit"
