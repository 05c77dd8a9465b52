"""TML605 debug-mode-left-on."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.findings import Applicability, Finding, Fix, Severity
from torchmemlint.flow.facts import FileFacts, ServiceCall
from torchmemlint.flow.program import Function
from torchmemlint.knowledge.services import ANOMALY_CONTEXT, ANOMALY_SWITCH, RECORDED, RECORDING
from torchmemlint.rules.arguments import node_of, replacing, shown
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import is_test, report
from torchmemlint.rules.steps import always

_TRAINING = frozenset("train fit backward step zero_grad training_step".split())


class DebugModeLeftOn(Rule):
    """A mode for debugging is on whenever the program trains.

    ## What it does
    Reports `torch.autograd.set_detect_anomaly(True)`, `with torch.autograd.detect_anomaly():` and
    `torch.cuda.memory._record_memory_history()` where nothing decides about them: at module level, or in a function
    that trains.

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

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield debugging modes that are switched on unconditionally and stay on."""
        if is_test(facts):
            return
        calls = list({call.site: call for call in facts.services.values()}.values())
        switched_off = any(call.qualified in ANOMALY_SWITCH and _switch(call) == "False" for call in calls)
        used = any(call.qualified in RECORDED or (call.qualified in RECORDING and not _records(call)) for call in calls)
        for call in calls:
            if call.handling or not always(call.tests) or not _trains(call.scope.function):
                continue
            if call.qualified in ANOMALY_SWITCH and _switch(call) == "True" and not switched_off:
                node = node_of(call.site, "mode", 0)
                edits = replacing(call.site, node, "False") if node is not None else ()
                fix = Fix("Switch anomaly detection off", Applicability.UNSAFE, edits)
                what = "anomaly detection is on for every step: it costs time, and stack traces on the host"
            elif call.qualified in ANOMALY_CONTEXT:
                fix = Fix("Make it an option of the program", Applicability.HINT)
                what = "anomaly detection is on for every step in it: it costs time, and stack traces on the host"
            elif call.qualified in RECORDING and _records(call) and not used:
                fix = Fix("Dump what is recorded, or do not record", Applicability.HINT)
                what = "a stack is kept on the host for every allocation, and nothing reads or stops it"
            else:
                continue
            where = call.scope.function
            yield report(
                self,
                facts,
                call.site,
                f"`{call.callee}`: {what}",
                evidence=[
                    (call.site, f"on in every run of `{where.name}`" if where is not None else "on in every run")
                ],
                fix=fix,
            )


def _switch(call: ServiceCall) -> str:
    """Source text of the mode that is set."""
    return shown(node_of(call.site, "mode", 0))


def _records(call: ServiceCall) -> bool:
    return shown(node_of(call.site, "enabled", 0)) not in ("None", "False")


def _trains(function: Function | None) -> bool:
    """Is this the module level, or a function that trains and does not merely switch modes?"""
    if function is None:
        return True
    return any(name in _TRAINING or name.startswith(("train", "run_train")) for name in function.outline.calls)
