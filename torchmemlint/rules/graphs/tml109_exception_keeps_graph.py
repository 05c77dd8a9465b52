"""TML109 exception-keeps-graph."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Finding, Fix, Severity
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told


class ExceptionKeepsGraph(TellingRule):
    """A failed step is retried, or its exception kept, while the traceback still holds the step's tensors.

    ## What it does
    Reports work that is done inside the `except` clause of an out-of-memory error: the function calling itself with a
    smaller batch, the same call again, another forward or backward pass. Also reports the exception itself being kept
    beyond the clause, on an attribute, in a list, or over the iterations of a loop of attempts, where the `try` body
    ran a forward or backward pass, or ran out of memory.

    A clause is one for memory that ran out when it catches `torch.OutOfMemoryError` (or its older name), when it tests
    for it (`"out of memory" in str(e)`, a function that does so), or when it calls `torch.cuda.empty_cache()`.

    ## Why it costs memory
    An exception holds its traceback, the traceback the frames of everything that the `try` body called, and a frame
    its local variables: all activations of the failed step, and its graph, at the moment when there is no memory left.
    `empty_cache()` and `gc.collect()` free nothing of that, and neither does `del e`: Python itself holds the exception
    until the clause is left.

    ## Example
    ```python
    def step(batch):
        try:
            return loss_of(model, batch)
        except torch.OutOfMemoryError:
            torch.cuda.empty_cache()
            return sum(step(half) for half in batch.chunk(2))
    ```

    ## Use instead
    ```python
    def step(batch):
        try:
            return loss_of(model, batch)
        except torch.OutOfMemoryError:
            pass  # the clause is left: the failed step is gone
        torch.cuda.empty_cache()
        return sum(step(half) for half in batch.chunk(2))
    ```

    ## Fix safety
    No fix is applied: what moves out of the clause depends on what else it does. To keep an exception, keep `str(e)`,
    or call `traceback.clear_frames(e.__traceback__)` first.

    ## When it stays silent
    - The handler only frees, logs, skips, raises, or notes down that it has to be done again (a flag, a smaller batch
      size, `continue`).
    - The traceback is cleared in the clause.
    - The retry runs on the CPU.
    - It is not known that memory ran out, or that what is called again computes anything.

    ## References
    - [PyTorch FAQ: my out of memory exception handler can't allocate memory](https://pytorch.org/docs/stable/notes/faq.html#my-out-of-memory-exception-handler-can-t-allocate-memory)
    - [traceback.clear_frames](https://docs.python.org/3/library/traceback.html#traceback.clear_frames)
    """

    code = "TML109"
    name = "exception-keeps-graph"
    severity = Severity.WARNING
    fix = Applicability.HINT
    why = "the exception's traceback holds the frames of the failed step, with every tensor in them"

    def tell(self, told: Told) -> Finding:
        """Say what runs, or keeps the exception, while its traceback holds the failed step."""
        (failed,), text = told.case.graphs, told.text_of(told.case.place)
        if told.case.how is None:
            message = f"`{text}` runs inside the handler: the exception still holds the tensors"
            message += " of the step that ran out of memory"
            title = "Leave the `except` clause first, and retry after it"
        else:
            message = f"`{text}` keeps the exception, and with its traceback the tensors of the"
            message += " failed step"
            title = "Keep `str(e)`, or clear the frames with `traceback.clear_frames` first"
        link = told.link(failed, f"`{told.text_of(failed)}` may fail here: the traceback keeps its frames")
        return told.finding(self, message, [link], fix=Fix(title, Applicability.HINT))
