"""TML109 exception-keeps-graph."""

from __future__ import annotations

from torchmemlint.findings import Finding
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told


class ExceptionKeepsGraph(TellingRule):
    """A failed step is retried, or its exception kept, while the traceback still holds the step's tensors."""

    def tell(self, told: Told) -> Finding:
        """Say what runs, or keeps the exception, while its traceback holds the failed step."""
        (failed,), text = told.case.graphs, told.brief
        if told.case.how is None:
            message = f"`{text}` runs in the `except` block: the exception holds the failed step's tensors"
            title = "Retry after the `except` block"
        else:
            message = f"`{text}` keeps the exception, whose traceback holds the tensors of the failed step"
            title = "Keep `str(e)`, or call `traceback.clear_frames` first"
        link = told.link(failed, f"`{told.text_of(failed)}` may fail here: the traceback keeps its frames")
        return told.finding(self, message, [link], hint=title)
