"""TML506 checkpoint-kept-alive."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Edit, Finding, Fix, Position, Severity, Span
from torchmemlint.flow.fact.outcomes import Bound
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told


class CheckpointKeptAlive(TellingRule):
    """A checkpoint that was copied into the model stays in memory while the program works.

    ## What it does
    Reports a name that still holds what `torch.load` read while the same function, or the script itself, goes on to
    train or to run the model, although it is not used again: its tensors were copied by `load_state_dict`. An advice
    where the file is read to the host.

    ## Why it costs memory
    A model's `load_state_dict` copies. The checkpoint's own tensors stay for as long as a name holds them: the weights
    once more, on the device where it was read to one. An optimizer copies only what was read to another device than its
    own (or has another type), and takes over the rest. A function that returns lets go of them; a `main` that reads the
    checkpoint and then trains does so at the end of the training.

    ## Example
    ```python
    def main(model, optimizer, path, device):
        checkpoint = torch.load(path, map_location=device)
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        train(model, optimizer)
    ```

    ## Use instead
    ```python
    def main(model, optimizer, path, device):
        checkpoint = torch.load(path, map_location=device)
        model.load_state_dict(checkpoint["model"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        del checkpoint
        train(model, optimizer)
    ```

    ## Fix safety
    Safe: the names are deleted behind their last use, where all of them are bound. Where some are bound under another
    condition, the fix is shown only.

    ## When it stays silent
    Nothing is copied from what was read (a file of an optimizer's state alone, unless it is read to the host), or more
    is done with it: it is kept, returned, or used by a function within the function; a name is deleted, or assigned
    something else; nothing runs after the last use, or nothing that is seen to train or to run a model; tests.

    ## References
    - [torch.optim.Optimizer.load_state_dict](https://docs.pytorch.org/docs/stable/generated/torch.optim.Optimizer.load_state_dict.html):
      its `_process_value_according_to_param_policy` is a `to`, which copies nothing on the same device
    - [torch.nn.Module.load_state_dict](https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.load_state_dict)
    - [PyTorch FAQ: my model reports out of memory](https://docs.pytorch.org/docs/stable/notes/faq.html)
    """

    code = "TML506"
    name = "checkpoint-kept-alive"
    severity = Severity.WARNING
    fix = Applicability.SAFE
    why = "the weights are in memory once more for as long as the program works"

    def tell(self, told: Told) -> Finding:
        """Say that nobody needs a checkpoint any more."""
        bound = told.about(Bound)
        doubtful = bound.on_host or (bound.as_saved and "torch.save(" not in told.facts.source.text)
        where = "in CPU memory" if bound.on_host else "on the device"
        if bound.as_saved:
            where = "on the device that it was saved from"
        return told.finding(
            self,
            f"`{bound.names[0]}` keeps the checkpoint {where} after its last use",
            [
                told.link(bound.copied, "its tensors are copied here"),
                told.link(bound.last, "it is used here for the last time"),
                told.link(bound.work, f"`{told.text_of(bound.work)}` runs with it still in memory"),
            ],
            severity=Severity.ADVICE if doubtful else None,
            fix=_fix(told, bound),
        )


def _fix(told: Told, bound: Bound) -> Fix:
    description = f"Delete {', '.join(f'`{name}`' for name in bound.names)}"
    if bound.after is None or told.facts.path.suffix == ".ipynb":
        return Fix(description, Applicability.HINT)
    span, statement, rows = told.span_of(bound.after), told.facts.source.statement_span, told.facts.source.rows
    first = rows[statement(Span(span.start, span.start)).start.row - 1]
    row = statement(Span(span.end, span.end)).end.row
    indent, end = first[: len(first) - len(first.lstrip())], Position(row, len(rows[row - 1].rstrip("\r\n")) + 1)
    return Fix(description, Applicability.SAFE, (Edit(Span(end, end), f"\n{indent}del {', '.join(bound.names)}"),))
