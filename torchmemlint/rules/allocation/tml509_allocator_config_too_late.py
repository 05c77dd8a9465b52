"""TML509 allocator-config-too-late."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.findings import Applicability, Finding, Fix, Severity
from torchmemlint.flow.facts import FileFacts
from torchmemlint.rules.allocation import allocator_settings
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import report_operation, written

_ALL = frozenset({"ALLOC_CONF"})
# What starts other processes, which get the environment as it is then.
_STARTING = ("subprocess", "multiprocessing", "spawn", "Popen", "os.exec", "os.system", "ray.", "fork", "launch")


class AllocatorConfigTooLate(Rule):
    """The allocator's settings are put into the environment when it has read them already.

    ## What it does
    Reports `os.environ["PYTORCH_CUDA_ALLOC_CONF"] = …` (also `PYTORCH_ALLOC_CONF`, and `setdefault`) after something
    that has initialised CUDA in the same function or at the module's level, and with `backend:` after the import of
    torch.

    ## Why it costs memory
    The caching allocator reads the variable once, when CUDA is initialised; torch 2.2, 2.6 and 2.13 do so alike. What
    is set later changes nothing in this process: the fragmentation that `expandable_segments:True` was to cure stays,
    and nobody is told. A `backend:` is read when torch is loaded; set between that and the first use
    of CUDA, it ends the program with an internal error.

    ## Example
    ```python
    model = Model().cuda()
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
    ```

    ## Use instead
    ```python
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"  # before torch is imported
    import torch

    model = Model().cuda()
    ```

    ## Fix safety
    Shown only: where the line belongs depends on what else has to run before it. Best is to set the variable where the
    program is started.

    ## When it stays silent
    Nothing in view has initialised CUDA before: an import of torch alone has not, nor has `torch.cuda.is_available()`;
    the earlier use is under a condition; the file starts other processes, which are given the environment; in an
    `except` clause; tests.

    ## References
    - [CUDA semantics: optimizing memory usage](https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-alloc-conf)
    - [pytorch#104801: a backend that is set after the import](https://github.com/pytorch/pytorch/issues/104801)
    """

    code = "TML509"
    name = "allocator-config-too-late"
    severity = Severity.WARNING
    fix = Applicability.HINT
    why = "the allocator has read its settings, and goes on with those that it had"

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield settings that nobody reads any more."""
        if any(word in facts.source.text for word in _STARTING):
            return
        settings = (late for formula in facts.formulas(frozenset(), _ALL) for late in allocator_settings.find(formula))
        for late in settings:
            yield report_operation(
                self,
                facts,
                late.op,
                f"`{late.variable}` is set here after it was read",
                evidence=[
                    (late.before, f"it is read here: `{written(facts, late.before, 50)}`"),
                    (late.op, "no longer read in this process"),
                ],
                fix=Fix("Set it before torch is imported, or where the program is started", Applicability.HINT),
            )
