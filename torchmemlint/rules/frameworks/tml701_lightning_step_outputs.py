"""TML701 lightning-step-outputs."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.findings import Applicability, Finding, Severity
from torchmemlint.flow import lightning
from torchmemlint.flow.facts import Collection, FileFacts, StepOutput, Use
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import detach_fix, history, is_test, report
from torchmemlint.rules.frameworks.lifetime import (
    detached_where_spent,
    has_no_graph,
    is_bounded,
    is_kept_by_step,
    is_spent,
    only_kept,
)
from torchmemlint.syntax.source_module import Site
from torchmemlint.syntax.text import shortened, text_of


class LightningStepOutputs(Rule):
    """A Lightning `training_step` keeps its outputs with their graph until the epoch ends.

    ## What it does
    Reports a `training_step` of a LightningModule (or a method that it calls) that puts a graph-carrying value into a
    container of the module: what code does since Lightning 2 took `training_epoch_end` away. Where the class has a
    `training_epoch_end(self, outputs)` (Lightning 1), it also reports graph-carrying values that the step returns
    beside its loss: Lightning keeps the outputs of all steps for this hook.

    ## Why it costs memory
    Each step's value keeps its graph. What Lightning's backward has not run through holds every saved activation of
    its step, and training runs out of memory within the epoch (severity `error`). Graphs that it has run through, such
    as the returned loss's, hold their nodes on the host and each tensor in them on the device (severity `warning`).
    Lightning detaches the loss that it keeps itself; the extras beside it only up to version 1.5.

    ## Example
    ```python
    def training_step(self, batch, batch_idx):
        loss = self.loss(batch)
        self.training_step_outputs.append(loss)
        return loss

    def on_train_epoch_end(self):
        self.log("train_loss_epoch", torch.stack(self.training_step_outputs).mean())
        self.training_step_outputs.clear()
    ```

    ## Use instead
    ```python
        self.training_step_outputs.append(loss.detach())
    ```

    or let Lightning do the averaging: `self.log("train_loss", loss, on_epoch=True)`.

    ## Fix safety
    Safe: the kept value is detached, the returned loss is untouched. Only values that the appending or returning
    statement writes itself are changed: a dict made before may have been read, and differentiated, in between.

    ## When it stays silent
    The values are numbers or detached, the container is bounded or emptied during the steps, its elements are
    differentiated later; a `training_step_end` makes something else of what the step returns; validation, test and
    prediction steps, which Lightning runs with gradients off; it is not known whether the value carries a graph.

    ## References
    - [Lightning 2: migration from epoch-end hooks](https://github.com/Lightning-AI/pytorch-lightning/pull/16520)
    - [Lightning: out of memory with training_epoch_end](https://github.com/Lightning-AI/pytorch-lightning/issues/15514)
    """

    code = "TML701"
    name = "lightning-step-outputs"
    severity = Severity.ERROR
    fix = Applicability.SAFE
    why = "what a step keeps with its graph stays until the epoch ends, once for each step"

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield graphs that training steps leave behind."""
        if is_test(facts):
            return
        for collection in facts.collections:
            if is_kept_by_step(collection) and not collection.slot_overwritten and not _emptied(facts, collection):
                yield from self._kept(facts, collection)
        seen: set[Site] = set()
        for output in facts.step_outputs:
            if output.site not in seen:
                seen.add(output.site)
                yield self._returned(facts, output)

    def _kept(self, facts: FileFacts, collection: Collection) -> Iterator[Finding]:
        origins = collection.value.origins - {collection.kept}
        use = facts.uses.get(collection.kept, Use.NOTHING)
        if use & (Use.DIFFERENTIATED | Use.ARRAY) or collection.value.part >= 0 or has_no_graph(facts, origins):
            return
        if origins <= facts.leaves:
            return
        spent = is_spent(facts, origins, collection.loop)
        if spent is not None and detached_where_spent(facts, collection.value, spent, collection.site):
            return
        value = collection.value
        is_only_kept = only_kept(collection.site, collection.element)
        links = history(value.history)
        if collection.element.node is not collection.site.node:
            links.append((collection.site, f"goes into `{collection.container}` here, in every training step"))
        if spent is not None:
            links.append((spent, "Lightning differentiates what is returned: the saved tensors are freed, nodes stay"))
        if collection.made is not None:
            links.append((collection.made, f"`{collection.container}` is made here and keeps all that is put in"))
        yield report(
            self,
            facts,
            collection.element,
            f"`{collection.container}` keeps `{shortened(text_of(collection.element.node), 40)}` of every training step"
            " with its autograd graph"
            + (" (spent by the step's backward)" if spent is not None else " (live: no backward frees it)"),
            severity=Severity.WARNING if spent is not None else Severity.ERROR,
            evidence=links,
            fix=detach_fix(collection.element) if is_only_kept and value.certain and value.exact else None,
        )

    def _returned(self, facts: FileFacts, output: StepOutput) -> Finding:
        value = output.value
        is_only_kept = only_kept(output.returned, output.site)
        name = Site(output.hook.piece, output.hook.node.name)
        return report(
            self,
            facts,
            output.site,
            f"`{shortened(text_of(output.site.node), 40)}` is returned beside the loss with its autograd graph, and"
            f" kept for `{lightning.EPOCH_END}`",
            severity=Severity.WARNING,
            evidence=[*history(value.history), (name, "receives the outputs of all steps of the epoch")],
            fix=detach_fix(output.site) if is_only_kept and value.certain and value.exact else None,
        )


_PER_BATCH = (lightning.STEP, "on_train_batch_start", "on_train_batch_end", "on_before_backward")


def _emptied(facts: FileFacts, collection: Collection) -> bool:
    """Are elements taken out again, or all of them in each step?"""
    if is_bounded(facts, collection):
        return True
    function = collection.scope.function
    cls = function.cls if function is not None else None
    if cls is None:
        return False
    attribute = collection.container.split(".")[1].partition("[")[0]
    methods = [method for name in _PER_BATCH if (method := cls.method(name)) is not None]
    if any("clear" in method.outline.methods.get(f"self.{attribute}", ()) for method in methods):
        return True
    return not facts.writers.get((cls.oid, attribute), set()).isdisjoint(methods)
