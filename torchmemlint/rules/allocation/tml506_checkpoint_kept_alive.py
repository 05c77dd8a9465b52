"""TML506 checkpoint-kept-alive."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.findings import Applicability, Edit, Finding, Fix, Position, Severity, Span
from torchmemlint.flow.facts import FileFacts
from torchmemlint.rules.allocation import leftover
from torchmemlint.rules.allocation.leftover import Leftover
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import is_test, report
from torchmemlint.syntax.text import shortened, text_of


class CheckpointKeptAlive(Rule):
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

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield checkpoints that nobody needs any more."""
        if is_test(facts):
            return
        for load in facts.checkpoint_loads:
            if not load.on_host and load.origin not in facts.copied_to_modules:
                continue  # optimizers take over what lies on their device
            found = leftover.find(facts, load)
            if found is None:
                continue
            doubtful = load.on_host or (load.as_saved and "torch.save(" not in facts.source.text)
            where = "on the host" if load.on_host else "on the device"
            if load.as_saved:
                where = "where it was saved from"
            yield report(
                self,
                facts,
                load.site,
                f"`{found.names[0]}` keeps the checkpoint in memory, {where}, after the last use of it",
                severity=Severity.ADVICE if doubtful else None,
                evidence=[
                    (facts.copied_at[load.origin], "its tensors are copied here"),
                    (found.last, "it is used here for the last time"),
                    (found.work, f"`{shortened(text_of(found.work.node), 40)}` runs with it still in memory"),
                ],
                fix=_fix(facts, found),
            )


def _fix(facts: FileFacts, found: Leftover) -> Fix:
    description = f"Delete {', '.join(f'`{name}`' for name in found.names)}"
    if found.after is None or facts.path.suffix == ".ipynb":
        return Fix(description, Applicability.HINT)
    span = found.after.span
    rows = facts.source.rows
    first, last = rows[span.start.row - 1], rows[span.end.row - 1]
    indent = first[: len(first) - len(first.lstrip())]
    end = Position(span.end.row, len(last.rstrip("\r\n")) + 1)
    return Fix(description, Applicability.SAFE, (Edit(Span(end, end), f"\n{indent}del {', '.join(found.names)}"),))
