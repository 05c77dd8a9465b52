"""TML406 device-tensor-in-worker."""

from __future__ import annotations

from torchmemlint.findings import Finding
from torchmemlint.flow.fact.details import Placing
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told

_IN_WORKER = "a forked worker cannot use CUDA after its parent did, and a spawned one creates a CUDA context of its own"


class DeviceTensorInWorker(TellingRule):
    """Tensors are put on the accelerator while data is loaded."""

    def tell(self, told: Told) -> Finding:
        """Say which tensors are put on an accelerator by what a loader calls."""
        case, placing = told.case, told.about(Placing)
        text, loader = told.text_of(case.place), placing.loader
        what = f"`{placing.entry}`" if placing.entry else "the lambda that makes its batches"
        if loader is None:
            message = f"`{text}` moves samples to the GPU one by one: slow, and rules out worker processes"
            first = told.link(case.place, f"{what} moves a tensor to the GPU here")
        else:
            message = f"`{text}` moves a tensor to the GPU inside a worker process"
            first = told.link(loader, f"the workers of this `{told.callee_of(loader)}` run {what}")
        return told.finding(
            self,
            message,
            [first, *told.called(), told.link(case.place, _IN_WORKER)],
            hint="Return CPU tensors, and move the whole batch in the training loop",
        )
