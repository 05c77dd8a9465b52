"""TML110 memoised-samples."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.findings import Applicability, Evidence, Finding, Fix, Severity
from torchmemlint.flow.fact.outcomes import Memo
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told


class MemoisedSamples(TellingRule):
    """A data set keeps every sample that was ever asked for.

    ## What it does
    Reports the `__getitem__` of a map-style data set under a decorator that remembers all results: `functools.cache`,
    `functools.lru_cache(maxsize=None)`, `memoize` of toolz and funcy, or one written in the project, whose dict is
    never emptied. Where a loader is seen to load from it in workers that end with each pass, this is a warning, and a
    dict or list that `__getitem__` fills itself, under the index (`self.cache[index] = sample`), is reported too.

    ## Why it costs memory
    After a pass over the data all of it lies decoded in host memory, which for most data sets is more than there is;
    memory grows with each step until it runs out. In a loader's workers such a cache does not even save time: each
    process fills its own, no index is asked for twice in a pass, and when the pass ends the workers end, and their
    caches with them. Workers that persist keep them, and in the end each holds a copy of every sample. What was drawn
    at random for a sample, its augmentation, is frozen too.

    ## Example
    ```python
    class Scans(Dataset):
        @functools.lru_cache(maxsize=None)
        def __getitem__(self, index):
            return torch.from_numpy(nibabel.load(self.paths[index]).get_fdata())
    ```

    ## Use instead
    ```python
    class Scans(Dataset):
        def __getitem__(self, index):
            return torch.from_numpy(nibabel.load(self.paths[index]).get_fdata())
    ```
    Where reading is slow and the data small, read all of it once in `__init__`, into one array or tensor that workers
    share; else store it on disk in a form that is read quickly (`numpy.memmap`).

    ## Fix safety
    A hint: whether to drop the cache, bound it or fill it before the workers start is for the author to say.

    ## When it stays silent
    - The cache is bounded or emptied: `lru_cache` keeps 128 results where nothing is said.
    - It lies in shared memory or on disk, or the code of its decorator is not seen.

    A cache that `__getitem__` fills itself is not reported, either, where

    - no loader with workers is seen that loads from it, or how many workers it has is not known,
    - the workers persist, or samples are drawn with replacement,
    - it is not empty when the workers start, or is filled under something other than the index,
    - a flag switches it on.

    ## References
    - [nonechucks#13](https://github.com/msamogh/nonechucks/issues/13)
    - [torchdatasets#26](https://github.com/szymonmaszke/torchdatasets/issues/26)
    - [functools.lru_cache](https://docs.python.org/3/library/functools.html#functools.lru_cache)
    """

    code = "TML110"
    name = "memoised-samples"
    severity = Severity.WARNING
    fix = Applicability.HINT
    why = (
        "after one pass the whole data set lies decoded in host memory, and in a loader's workers nobody finds it there"
    )

    def tell(self, told: Told) -> Finding:
        """Say what keeps the samples."""
        memo, place = told.about(Memo), told.case.place
        if memo.attribute:
            message = f"`self.{memo.attribute}` of `{memo.cls}` keeps every sample"
            title = "Drop the cache, or fill it before the workers start"
        else:
            name = told.text_of(place).lstrip("@").partition("(")[0]
            message = f"`{name}` keeps every sample of `{memo.cls}` that was ever asked for"
            title = "Drop the cache, or bound it"
        return told.finding(
            self,
            message + (_in_vain(memo) if memo.loader is not None else ""),
            _evidence(told, memo),
            severity=Severity.ADVICE if told.case.advice else Severity.WARNING,
            fix=Fix(title, Applicability.HINT),
        )


def _evidence(told: Told, memo: Memo) -> Iterator[Evidence]:
    if memo.made is not None:
        yield told.link(memo.made, "it is empty when the workers start")
    if not memo.attribute:
        yield told.link(told.case.place, "it keeps the result of every call, and forgets none")
    if memo.at is not None:
        yield told.link(memo.at, "each sample is put there, and nothing takes it out")
    if memo.loader is not None:
        yield told.link(memo.loader, "its workers end with each pass, and in a pass each sample is asked for once")


def _in_vain(memo: Memo) -> str:
    several = f"{memo.workers} workers that end" if memo.workers is not None else "workers that end"
    return f", in {'a worker that ends' if memo.workers == 1 else several} with each pass: none is ever found there"
