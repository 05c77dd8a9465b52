"""`TORCHMEMLINT_OOM=1`: any program that imports torch is explained when CUDA runs out of memory.

torch calls `begin` at the end of `import torch`, as it calls all entry points of the group `torch.backends` (torch 2.5
and newer: https://docs.pytorch.org/tutorials/unstable/python_extension_autoload.html). Nothing runs in programs without
torch. Without the variable, this module is all that is imported; `TORCH_DEVICE_BACKEND_AUTOLOAD=0` turns it off, too.
"""

from __future__ import annotations

import os
import sys

VARIABLE = "TORCHMEMLINT_OOM"
SNAPSHOT = "oom_snapshot.pickle"
ENTRIES = 100_000
"""Events that are kept, the last ones: of a history as long as this the file has about 20 MB."""
_YES, _NO = frozenset({"1", "on", "true", "yes"}), frozenset({"", "0", "false", "no", "off"})


def begin() -> None:
    """Record from the moment when CUDA starts, if the variable asks for it: 1, or a file for the report."""
    asked = os.environ.get(VARIABLE, "")
    if asked.lower() in _NO:
        return
    try:
        from torchmemlint.cli.explaining import explain_at_exit

        explain_at_exit(None if asked.lower() in _YES else asked)
    except Exception as error:  # noqa: BLE001 (torch would not be imported otherwise)
        print(f"torchmemlint: {VARIABLE}: nothing is recorded: {error!r}", file=sys.stderr)


def forget() -> None:
    """Let this process, and those that it starts, be without it: something else records."""
    os.environ.pop(VARIABLE, None)
