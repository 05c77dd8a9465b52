"""TML110 memoised-samples."""

from __future__ import annotations

from torchmemlint.findings import Finding
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
            [
                *told.links([memo.made], "the cache is empty when the workers start"),
                *told.links([] if memo.attribute else [place], "this decorator keeps the result of every call"),
                *told.links([memo.at], "each sample is stored here, and nothing removes it"),
                *told.links([memo.loader], "its workers end with each epoch, in which each sample is loaded once"),
            ],
            hint=title,
        )


def _in_vain(memo: Memo) -> str:
    workers = "each worker" if memo.workers is None else f"each of {memo.workers} workers"
    return f" in {'a worker' if memo.workers == 1 else workers} for one epoch: the cache is never hit"
