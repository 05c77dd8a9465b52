"""TML405 dataset-of-python-objects."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Finding, Fix, Severity
from torchmemlint.flow.fact.outcomes import Copied
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told


class DatasetOfPythonObjects(TellingRule):
    """Every worker comes to own a copy of the data set's Python objects.

    ## What it does
    Reports a map-style data set whose `__getitem__` reads from a list with a dict, tuple, list or other structure of
    Python objects for each sample, filled from the lines of a file, the files of a folder, the rows of a table or a
    JSON document, where a loader with two or more workers loads from it. The loader may stand in another file.

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
    - The number of workers is not known, or is 0 or 1.
    - Where the entries come from is not known (a parameter, a pickle), or they are not put in once for each record.
    - The entries are single strings or numbers, or hold arrays, tensors or anything else that is not understood.
    - The list is turned into an array afterwards.
    - A loader reads the samples in order, so that its workers copy no more than one list between them. Where a value
      decides that, the finding is only possible.
    - Tests.

    ## References
    - [pytorch#13246](https://github.com/pytorch/pytorch/issues/13246)
    - [Demystify RAM usage in multi-process data loaders](https://ppwwyyxx.com/blog/2022/Demystify-RAM-Usage-in-Multiprocess-DataLoader/)
    """

    code = "TML405"
    name = "dataset-of-python-objects"
    severity = Severity.WARNING
    fix = Applicability.HINT
    why = "reading a Python object writes its reference count, and with it the worker's own copy of the page around it"

    def tell(self, told: Told) -> Finding:
        """Say what the data set keeps, and who copies it."""
        copied = told.about(Copied)
        feeding = copied.by
        is_known = isinstance(feeding.workers, int) and not feeding.chosen
        number = f"each of the {feeding.workers} workers" if is_known else "each worker"
        name = told.callee_of(feeding.loader)
        return told.finding(
            self,
            f"`{copied.name}` keeps {copied.what} in `self.{copied.attribute}`: {number} ends up with its own copy",
            [
                told.link(copied.entry, f"`self.{copied.attribute}` is filled with Python objects here: {copied.what}"),
                told.link(copied.source, "there are as many as this holds"),
                told.link(copied.read, "reading one changes its reference count"),
                told.link(feeding.loader, f"the workers of this `{name}` do so, each in its own process"),
            ],
            fix=Fix("Keep the samples in arrays", Applicability.HINT),
        )
