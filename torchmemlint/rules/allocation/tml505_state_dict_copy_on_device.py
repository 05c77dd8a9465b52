"""TML505 state-dict-copy-on-device."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.findings import Applicability, Edit, Finding, Fix, Severity
from torchmemlint.flow.facts import FileFacts
from torchmemlint.knowledge.checkpoints import WITHOUT_TENSORS
from torchmemlint.rules.allocation import snapshots
from torchmemlint.rules.allocation.snapshots import Snapshot
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import report_operation, written
from torchmemlint.syntax.text import shortened

_COPYING = frozenset({"deepcopy", "clone"})
_ON_HOST = 'to("cpu", copy=True)'


class StateDictCopyOnDevice(Rule):
    """The weights of the best epoch wait on the device for the end of the training.

    ## What it does
    Reports `copy.deepcopy(model.state_dict())`, and comprehensions that clone each of its tensors, where they are taken
    under a comparison, as of the best result so far, and all that is done with them is that they are put back, saved or
    returned, in a function or class that brings something to a device.

    ## Why it costs memory
    A copy of a tensor lies where the tensor lies. The weights are on the device a second time while the model goes on
    training, and for a moment, while a new copy replaces the old one, a third time. Nothing computes with them there:
    `load_state_dict` takes tensors from the host just as well. An advice: weights, gradients and the two averages that
    Adam keeps are four times as much already, and activations come on top.

    ## Example
    ```python
    if accuracy > best:
        best = accuracy
        best_state = copy.deepcopy(model.state_dict())
    ```

    ## Use instead
    ```python
    if accuracy > best:
        best = accuracy
        best_state = {name: value.to("cpu", copy=True) for name, value in model.state_dict().items()}
    ```

    ## Fix safety
    Unsafe: the copied tensors are on the host, which matters where they are returned or saved, and entries that are no
    tensors (`get_extra_state`) have to be left out of the copying. `copy=True` is needed: on a model that is on the
    host already, `.cpu()` alone would give the parameters themselves, which go on changing.

    ## When it stays silent
    The copy is taken once (a start to go back to), or without a comparison (averages of weights, meta-learning);
    anything else is done with it, such as arithmetic; nothing in the function or its class says that there is a device;
    the state is a scheduler's; tests.

    ## References
    - [Saving and loading models: `best_model_state` and `deepcopy`](https://docs.pytorch.org/tutorials/beginner/saving_loading_models.html)
    - [torch.Tensor.to](https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to.html)
    """

    code = "TML505"
    name = "state-dict-copy-on-device"
    severity = Severity.ADVICE
    fix = Applicability.UNSAFE
    why = "the copied weights lie on the device, where nothing computes with them, until the training ends"

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield copies of states that could wait on the host."""
        for found in (one for formula in facts.formulas(_COPYING) for one in snapshots.find(formula)):
            owner = written(facts, found.state, 80).removesuffix(".state_dict()")
            if any(word in owner.lower() for word in WITHOUT_TENSORS):
                continue
            yield report_operation(
                self,
                facts,
                found.op,
                f"`{found.target}` is a copy of `{shortened(owner, 40)}` on the device, to be put back later",
                evidence=[
                    (found.on_device, "there is a device here"),
                    (found.test, f"a copy is taken where `{written(facts, found.test, 50)}`"),
                    (found.restored, "this is all that is done with it"),
                ],
                fix=Fix("Copy to the host", Applicability.UNSAFE, (_edit(facts, found),)),
            )


def _edit(facts: FileFacts, found: Snapshot) -> Edit:
    rows = facts.source.rows
    if found.clone is not None:
        span = facts.source.span_of(found.clone.span)
        return Edit(span, f"{span.text(rows).removesuffix('.clone()')}.{_ON_HOST}")
    state = facts.source.span_of(found.state.span).text(rows)
    copied = f"{{name: value.{_ON_HOST} for name, value in {state}.items()}}"
    return Edit(facts.source.span_of(found.op.span), copied)
