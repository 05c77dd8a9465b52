"""TML605 debug-mode-left-on."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Finding, Fix, Severity
from torchmemlint.flow.fact.outcomes import Serving
from torchmemlint.knowledge.services import ANOMALY_CONTEXT, RECORDING
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told


class DebugModeLeftOn(TellingRule):
    """A mode for debugging is on whenever the program trains.

    ## What it does
    Reports `torch.autograd.set_detect_anomaly(True)`, `with torch.autograd.detect_anomaly():` and
    `torch.cuda.memory._record_memory_history()` where nothing decides about them: at module level, in a function that
    trains, or as a context around work of any kind.

    ## Why it costs memory
    Anomaly detection keeps the Python stack of every operation's forward on the host and looks for NaN in every
    gradient: each step takes longer, some several times as long. It needs no more memory on the device. Recorded memory
    history stays on the host, with a stack for every allocation.

    ## Example
    ```python
    torch.autograd.set_detect_anomaly(True)
    train(model, loader)
    ```

    ## Use instead
    ```python
    torch.autograd.set_detect_anomaly(options.debug)
    train(model, loader)
    ```

    ## Fix safety
    Unsafe: without anomaly detection, a NaN in a gradient no longer ends the program. A context and recorded history
    are left to the reader.

    ## When it stays silent
    The mode is set by an argument, setting or other value, or under a condition; in an `except` clause; it is switched
    off again, or what was recorded is dumped, in the same file; the function does nothing but switch modes; tests.

    ## References
    - [Anomaly detection](https://docs.pytorch.org/docs/stable/autograd.html#anomaly-detection)
    - [Performance tuning guide: disable debugging APIs](https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html)
    - [Understanding CUDA memory usage](https://docs.pytorch.org/docs/stable/torch_cuda_memory.html)
    """

    code = "TML605"
    name = "debug-mode-left-on"
    severity = Severity.ADVICE
    fix = Applicability.UNSAFE
    why = "every step pays for debugging: in time, and in stack traces on the host, not in memory on the device"

    def tell(self, told: Told) -> Finding:
        """Say which mode stays on."""
        serving = told.about(Serving)
        if serving.name in RECORDING:
            what = "a stack is kept on the host for every allocation, and nothing reads or stops it"
            fix = Fix("Dump what is recorded, or do not record", Applicability.HINT)
        elif serving.name in ANOMALY_CONTEXT:
            what = "anomaly detection is on for every step in it: it costs time, and stack traces on the host"
            fix = Fix("Make it an option of the program", Applicability.HINT)
        else:
            what = "anomaly detection is on for every step: it costs time, and stack traces on the host"
            fix = _switched_off(told)
        place = told.case.place
        return told.finding(
            self, f"`{told.text_of(place)}`: {what}", [told.link(place, "on in every run"), *told.called()], fix=fix
        )


def _switched_off(told: Told) -> Fix:
    mode = told.call.argument("mode", 0) if told.call is not None else None
    edits = told.call.replacing(mode, "False") if told.call is not None and mode is not None else ()
    return Fix("Switch anomaly detection off", Applicability.UNSAFE, edits)
