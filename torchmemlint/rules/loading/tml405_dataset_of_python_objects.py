"""TML405 dataset-of-python-objects."""

from __future__ import annotations

from torchmemlint.findings import Finding
from torchmemlint.flow.fact.details import Copied
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told


class DatasetOfPythonObjects(TellingRule):
    """Every worker comes to own a copy of the data set's Python objects."""

    def tell(self, told: Told) -> Finding:
        """Say what the data set keeps, and who copies it."""
        copied = told.about(Copied)
        feeding = copied.by
        is_known = isinstance(feeding.workers, int) and not feeding.chosen
        number = f"each of {feeding.workers} workers" if is_known else "each worker"
        name = told.callee_of(feeding.loader)
        return told.finding(
            self,
            f"`{copied.name}` keeps {copied.what} in `self.{copied.attribute}`: {number} makes a copy",
            [
                told.link(copied.entry, f"`self.{copied.attribute}` is filled with Python objects here: {copied.what}"),
                told.link(copied.source, "there are as many objects as this has items"),
                told.link(copied.read, "reading an object changes its reference count"),
                told.link(feeding.loader, f"each worker of this `{name}` reads them in its own process"),
            ],
            hint="Store the samples in arrays",
        )
