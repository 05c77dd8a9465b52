"""TML501 host-then-device."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Edit, Finding, Fix, Severity, Span
from torchmemlint.flow.fact.outcomes import Creating
from torchmemlint.rules.arguments import WrittenCall
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.findings import offered
from torchmemlint.rules.told import Told
from torchmemlint.syntax.text import shortened, text_of


class HostThenDevice(TellingRule):
    """A tensor is created on the host and copied to the device at once.

    ## What it does
    Reports `torch.zeros(...).to(device)`, `torch.randn(...).cuda()` and the like: a factory without `device=` whose
    result does nothing but move to an accelerator.

    ## Why it costs memory
    The tensor exists twice, once on the host, where nobody uses it, and the copy goes over the bus, mostly while the
    program waits. A kernel on the device fills the same tensor there without either.

    ## Example
    ```python
    mask = torch.zeros(batch, length, length).to(device)
    ```

    ## Use instead
    ```python
    mask = torch.zeros(batch, length, length, device=device)
    ```

    ## Fix safety
    Safe for factories that fill a tensor with one value or with whole numbers: the same numbers come out. Unsafe for
    random ones, for which another generator draws, and for fractional steps and windows, which a device may round
    differently. None for `cuda(gpu)` where `gpu` may be None: the current GPU there, the host as `device=`.

    ## When it stays silent
    The factory is given a device, an `out` or pinned memory; a default device is set in the file; where the tensor goes
    is not known to be a device, or is the host; the tensor is known to be small (less than 1024 numbers, also where an
    option of the command line says so by default), or has one number for each item of a batch (as many as the first
    axis of another tensor); a module of layers tries itself out, once, under `if __name__ == "__main__"`; random
    numbers are what a parameter starts from, so that a seed means the same on every machine; something else happens
    before the move; data comes from Python or numpy (`torch.tensor`, `from_numpy`), which starts on the host anyway;
    tests. An advice where it happens once, as in a constructor, or every so many steps, where a script makes up random
    data for each of its steps, and where the tensor is not seen to be large (65,536 numbers, or two axes of the data;
    axes of a tensor without its last one make a flag for each token, which is little beside the tokens' features).

    ## References
    - [Performance tuning guide: create tensors directly on the target device](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    """

    code = "TML501"
    name = "host-then-device"
    severity = Severity.WARNING
    fix = Applicability.SAFE
    why = "the tensor is made on the host, where nobody uses it, and copied over the bus"

    def tell(self, told: Told) -> Finding:
        """Say that a tensor is created on the host only to be moved."""
        place, creating = told.case.place, told.about(Creating)
        created, device = told.call_at(creating.created), _device(told.call)
        callee = created.callee if created is not None else ""
        return told.finding(
            self,
            f"`{callee}(…)` makes a tensor on the host that goes to `{shortened(device, 40)}`",
            [
                told.link(creating.created, "created on the host: no `device=` is given"),
                told.link(place, "copied to the device at once"),
            ],
            severity=Severity.ADVICE if told.case.advice else None,
            fix=_fix(creating, told.call, created, device),
        )


def _device(moved: WrittenCall | None) -> str:
    """Source text of the device that a tensor goes to."""
    arguments = moved.node.args if moved is not None else ()
    named = [(one.keyword.value if one.keyword is not None else "", one.value) for one in arguments]
    return next((text_of(value) for name, value in named if name in ("", "device")), '"cuda"')


def _fix(creating: Creating, moved: WrittenCall | None, created: WrittenCall | None, device: str) -> Fix:
    edits: tuple[Edit, ...] = ()
    if moved is not None and created is not None and creating.same_place:
        written = created.piece.written
        text = written(created.node)
        if "#" not in written(moved.node)[len(text) :] and not text.startswith("("):
            after = Span(created.span.end, moved.span.end)
            edits = (*created.adding(f"device={device}"), Edit(after, ""))
    return offered("Create it on the device", Applicability.SAFE if creating.exact else Applicability.UNSAFE, edits)
