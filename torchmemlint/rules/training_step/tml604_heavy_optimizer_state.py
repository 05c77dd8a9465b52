"""TML604 heavy-optimizer-state."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.findings import Applicability, Finding, Fix, Severity
from torchmemlint.flow.facts import FileFacts
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import is_test, report
from torchmemlint.rules.training_step import optimizers

_HEAVY = 2  # numbers for each parameter
_FLOAT = 4  # bytes
_DIVIDED = ("FSDP", "FullyShardedDataParallel", "fully_shard", "ZeroRedundancyOptimizer", "deepspeed", "fsdp")
_FEW = ("get_peft_model", "LoraConfig", "add_adapter")


class HeavyOptimizerState(Rule):
    """An optimizer keeps at least two further numbers for every parameter of a model.

    ## What it does
    Says what the state of `torch.optim.Adam(model.parameters())` and its like takes, in bytes for each parameter. Off
    by default: it is no mistake, but the place to look where a model only just does not fit.

    ## Why it costs memory
    In units of the parameters' own memory, SGD keeps nothing, SGD with momentum one, Adam and AdamW two, with
    `amsgrad` three; gradients are one more. In float32 that makes 8 bytes for each parameter with plain SGD and 16
    with Adam, before the first activation. The state is made in the first `step()`: a program may get through its first
    forward and backward and run out of memory there.

    ## Example
    ```python
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    ```

    ## Use instead
    ```python
    optimizer = bitsandbytes.optim.AdamW8bit(model.parameters(), lr=1e-4)  # a byte for each number
    optimizer = torch.optim.Adafactor(model.parameters(), lr=1e-4)  # rows and columns instead of every number
    ```
    Or divide it over the processes that train (`ZeroRedundancyOptimizer`, FSDP), or train fewer parameters (adapters).

    ## Fix safety
    Only a hint: another optimizer is another training.

    ## When it stays silent
    The optimizer is not given a model's `parameters()`; one of its settings that decide is not known; the file divides
    the state over processes, or trains adapters; tests.

    ## References
    - [torch.optim.Adafactor](https://docs.pytorch.org/docs/stable/generated/torch.optim.Adafactor.html)
    - [bitsandbytes: 8-bit optimizers](https://huggingface.co/docs/bitsandbytes/main/en/optimizers)
    - [ZeroRedundancyOptimizer](https://docs.pytorch.org/docs/stable/distributed.optim.html)
    """

    code = "TML604"
    name = "heavy-optimizer-state"
    severity = Severity.ADVICE
    on = False
    fix = Applicability.HINT
    why = "the state stays for the whole training, and is larger than the parameters themselves"

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield optimizers with at least two numbers for each parameter."""
        text = facts.source.text
        if is_test(facts) or any(word in text for word in (*_DIVIDED, *_FEW)):
            return
        for built in optimizers.built(facts.program):
            if built.keeps < _HEAVY:
                continue
            state, whole = built.keeps * _FLOAT, (built.keeps + 2) * _FLOAT
            yield report(
                self,
                facts,
                built.site,
                f"`{built.callee}` keeps {built.keeps} more numbers for every parameter: {state} bytes of state, "
                f"{whole} with the parameter and its gradient (float32)",
                evidence=[(built.parameters, "all of these have a state from the first `step()` on")],
                fix=Fix("Where it does not fit: 8-bit or factored state, or state divided over processes", self.fix),
            )
