"""TML405 dataset-of-python-objects."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.findings import Applicability, Finding, Fix, Severity
from torchmemlint.flow.datasets import given_to
from torchmemlint.flow.facts import FileFacts
from torchmemlint.flow.program import ClassInfo
from torchmemlint.rules.arguments import is_default
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import is_test, report
from torchmemlint.rules.loading import python_objects
from torchmemlint.rules.loading.loaders import in_order, in_tests, name_of, workers


class DatasetOfPythonObjects(Rule):
    """Every worker comes to own a copy of the data set's Python objects.

    ## What it does
    Reports a map-style data set whose `__getitem__` reads from a list with a dict, tuple, list or other structure of
    Python objects for each sample, filled from the lines of a file, the files of a folder, the rows of a table or a
    JSON document, where a loader with two or more workers loads from it. The class may stand in another file.

    ## Why it costs memory
    A forked worker shares the parent's memory until one of them writes to it. Reading a Python object is writing: its
    reference count lies in the object and changes with each use, and the page around it is copied. After an epoch each
    worker has copied all that it has read, so that the list is there once for each worker and once more for the
    parent. A worker that is started otherwise (macOS, Windows, Linux from Python 3.14) holds its copy from the start.
    Validation loaders and other processes of a distributed run come on top. Arrays and tensors are not concerned:
    their numbers lie outside of the objects, and nothing counts references there.

    ## Example
    ```python
    class Clips(Dataset):
        def __init__(self, listing):
            self.samples = []
            for line in open(listing):
                path, start, end, label = line.split()
                self.samples.append({"path": path, "start": float(start), "end": float(end), "label": label})

        def __getitem__(self, index):
            return read_clip(**self.samples[index])

    loader = DataLoader(Clips("train.txt"), batch_size=32, num_workers=8)
    ```

    ## Use instead
    ```python
    class Clips(Dataset):
        def __init__(self, listing):
            rows = [line.split() for line in open(listing)]
            self.paths = np.array([row[0] for row in rows], dtype=np.bytes_)
            self.spans = np.array([row[1:3] for row in rows], dtype=np.float64)
            self.labels = np.array([row[3] for row in rows], dtype=np.bytes_)
    ```

    ## Fix safety
    A hint: how the objects are best packed into arrays (numbers by column, texts as fixed-width bytes or as one buffer
    with offsets, nested structures pickled one by one into such a buffer) is for the author to say.

    ## When it stays silent
    The number of workers is not known, or is 0 or 1; where the entries come from is not known (a parameter, a pickle);
    a loader reads the samples in order, so that its workers copy no more than one list between them; the entries are
    single strings or numbers, or hold arrays, tensors or anything else that is not understood; the
    list is turned into an array afterwards; it is not filled once for each record of something; tests.

    ## References
    - [pytorch#13246](https://github.com/pytorch/pytorch/issues/13246)
    - [Demystify RAM usage in multi-process data loaders](https://ppwwyyxx.com/blog/2022/Demystify-RAM-Usage-in-Multiprocess-DataLoader/)
    """

    code = "TML405"
    name = "dataset-of-python-objects"
    severity = Severity.WARNING
    fix = Applicability.HINT
    why = "reading a Python object writes its reference count, and with it the worker's own copy of the page around it"

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield lists of Python objects, each once, at what fills it or (in another file) at its first loader."""
        if is_test(facts):
            return
        asked: set[ClassInfo] = set()
        for loader in facts.built:
            count, instance = workers(loader), given_to(loader)
            if count is None or count < 2 or instance is None or instance.cls in asked or in_tests(facts, loader):
                continue
            if in_order(loader):
                continue  # each worker reads, and copies, its own share of the pages
            asked.add(instance.cls)
            if loader.iterable:
                continue
            kept = python_objects.find(instance.cls)
            if kept is None:
                continue
            here = kept.entry.piece.path == facts.path
            number = f"each of the {count} workers" if not is_default(loader.get("num_workers")) else "each worker"
            yield report(
                self,
                facts,
                kept.entry if here else loader.site,
                f"`{instance.cls.name}` keeps {kept.what} in `self.{kept.attribute}`,"
                f" of which {number} comes to own a copy",
                evidence=[
                    (kept.entry, f"`self.{kept.attribute}` is filled with Python objects here: {kept.what}"),
                    (kept.source, "there are as many as this holds"),
                    (kept.read, "reading one changes its reference count"),
                    (loader.site, f"the workers of this {name_of(loader.site)} do so, each in its own process"),
                ],
                fix=Fix("Keep the samples in arrays", Applicability.HINT, ()),
            )
