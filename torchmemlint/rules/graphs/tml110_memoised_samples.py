"""TML110 memoised-samples."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchmemlint.findings import Applicability, Finding, Fix, Severity
from torchmemlint.flow import sample_caches
from torchmemlint.flow.datasets import given_to, is_map_style
from torchmemlint.flow.facts import FileFacts, Loader
from torchmemlint.flow.program import ClassInfo
from torchmemlint.flow.sample_caches import Filled, Memoised
from torchmemlint.rules.arguments import is_default, node_of
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import Link, is_test, report
from torchmemlint.rules.loading.loaders import (
    asked_once_a_pass,
    ends_workers,
    in_tests,
    name_of,
    workers,
)
from torchmemlint.syntax.outline import dotted, dotted_text


class MemoisedSamples(Rule):
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
    The cache is bounded or emptied (`lru_cache` keeps 128 results where nothing is said), lies in shared memory or on
    disk, or its decorator is out of view. Of a cache that `__getitem__` fills by hand: no loader with workers is seen,
    the workers persist, the number of workers is not known, samples are drawn with replacement, something else fills
    the cache too or reads samples before the workers start, or a flag switches it on.

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

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield caches of samples: of this file's data sets, and of those in other files at the loader."""
        if is_test(facts):
            return
        given: dict[ClassInfo, Loader] = {}
        for loader in facts.loaders:
            instance = given_to(loader)
            if instance is not None and not loader.iterable:
                given.setdefault(instance.cls, loader)
        own = {cls.oid: cls for cls in facts.program.classes.values()}.values()
        for cls in dict.fromkeys((*own, *given)):
            loaded = given.get(cls)
            lost = loaded if loaded is not None and _is_lost(facts, loaded) else None
            decorated = sample_caches.memoised(cls)
            if decorated is not None and (loaded is not None or is_map_style(cls)):
                if decorated.site.piece.path == facts.path or lost is not None:
                    yield self._memoised(facts, cls, decorated, lost)
            elif lost is not None and (filled := sample_caches.filled_by_hand(cls)) is not None:
                yield self._filled(facts, cls, filled, lost)

    def _memoised(self, facts: FileFacts, cls: ClassInfo, found: Memoised, loader: Loader | None) -> Finding:
        evidence = [(found.site, "it keeps the result of every call, and forgets none")]
        if found.memoiser is not None:
            kept = found.memoiser
            evidence.append((found.site, f"`{kept.name}` is the project's: its dict is filled and never emptied"))
        here = found.site.piece.path == facts.path
        return report(
            self,
            facts,
            found.site if here else loader.site if loader is not None else found.site,
            f"`{found.name}` keeps every sample of `{cls.name}` that was ever asked for"
            + (_in_vain(loader) if loader is not None else ""),
            severity=Severity.WARNING if loader is not None else Severity.ADVICE,
            evidence=[*evidence, *_of_loader(loader)],
            fix=Fix("Drop the cache, or bound it", Applicability.HINT, ()),
        )

    def _filled(self, facts: FileFacts, cls: ClassInfo, found: Filled, loader: Loader) -> Finding:
        here = found.site.piece.path == facts.path
        return report(
            self,
            facts,
            found.site if here else loader.site,
            f"`{found.attribute}` of `{cls.name}` keeps every sample{_in_vain(loader)}",
            evidence=[
                (found.made, "it is empty when the workers start"),
                (found.site, "each sample is put into it, under the index that it is asked for with"),
                *_of_loader(loader),
            ],
            fix=Fix("Drop the cache, or fill it before the workers start", Applicability.HINT, ()),
        )


def _is_lost(facts: FileFacts, loader: Loader) -> bool:
    """Do workers fill the cache that end before they could ask for a sample again?"""
    return (
        bool(workers(loader))
        and ends_workers(loader)
        and asked_once_a_pass(loader)
        and not in_tests(facts, loader)
        and not _read_through(facts, loader)
    )


def _read_through(facts: FileFacts, loader: Loader) -> bool:
    """Does the file also run over the data set without the loader, so that the workers may find its cache filled?"""
    given = node_of(loader.site, "dataset", 0)
    path = dotted_text(given) if given is not None else ""
    iterated = (
        node.iter
        for found in facts.program.outlines()
        for node in found.nodes
        if isinstance(node, ast.For | ast.comprehension)
    )
    return bool(path) and any(
        dotted(part) == path
        for whole in iterated
        for part in ast.walk(whole)
        if isinstance(part, ast.Name | ast.Attribute)
    )


def _in_vain(loader: Loader) -> str:
    count = workers(loader) if not is_default(loader.get("num_workers")) else None
    several = (
        "a worker that ends" if count == 1 else "workers that end" if count is None else f"{count} workers that end"
    )
    return f", in {several} with each pass: none is ever found there"


def _of_loader(loader: Loader | None) -> Iterator[Link]:
    if loader is not None:
        name = name_of(loader.site)
        yield loader.site, f"the workers of this {name} end with each pass, and in a pass each sample is asked for once"
