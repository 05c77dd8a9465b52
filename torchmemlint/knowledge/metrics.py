"""Metrics that keep all that they were given, until they are reset.

Source: the pages of torchmetrics 1.9. Curves, and what is computed of them, need `thresholds` to be of a fixed size:
"Setting the `thresholds` parameter to `None` will activate the non-binned version that uses memory of size
O(n_samples)".
"""

from __future__ import annotations

LIBRARY = "torchmetrics."
BINNED = "thresholds"  # with these, a metric of _CURVES counts, and keeps nothing
_CURVES = ("AveragePrecision", "AUROC", "PrecisionRecallCurve", "ROC")
_KEEPING = ("CalibrationError", "MeanAveragePrecision", "ROUGEScore", "BERTScore", "KernelInceptionDistance")
UPDATE, COMPUTE, RESET = "update", "compute", "reset"


def is_metric(qualified: str) -> bool:
    """Is it a class of metrics? They are modules, and compute of what they are given: none has parameters to train."""
    return qualified.startswith(LIBRARY) and qualified.rpartition(".")[2][:1].isupper()


def keeps(qualified: str) -> bool:
    """Does a metric of this class keep what it is given, unless it is told which thresholds to count at?"""
    name = qualified.rpartition(".")[2]
    known = name.endswith((*_CURVES, *_KEEPING)) or name.startswith("Retrieval")
    return is_metric(qualified) and known
