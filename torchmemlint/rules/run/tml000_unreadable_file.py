"""TML000 unreadable-file."""

from __future__ import annotations

from torchmemlint.findings import Severity
from torchmemlint.rules.base import SilentRule


class UnreadableFile(SilentRule):
    """A file could not be analysed.

    ## What it does
    Reports a file that cannot be read, decoded or parsed: a missing permission, a dangling link, bytes that are
    not in the file's encoding, a syntax error, or one that would take more time, memory or depth than the
    [limits](../robustness.md) allow. A file in Python 2, or in a Python 3 before 3.7, in which `async` was a name, is
    named as such, with severity `warning`. The other files are checked as usual. It is reported whatever `select` says,
    unless it is ignored by its code.

    ## Why it costs memory
    It does not. But nothing is known about the file, and silence about it must not look like a clean bill.

    ## Example
    ```python
    print "loss", loss
    ```

    ## Use instead
    ```python
    print("loss", loss)
    ```
    or leave the file out with `extend-exclude`, or ignore this rule for it with `per-file-ignores`.

    ## Fix safety
    There is no fix.

    ## When it stays silent
    A file whose code never names torch, or a framework built on it, is not decoded or parsed, so nothing is said
    about what is in it. That strings and comments speak of it makes no difference.

    ## References
    - [PEP 263, source code encodings](https://peps.python.org/pep-0263/)
    """

    code = "TML000"
    name = "unreadable-file"
    severity = Severity.ERROR
    why = "nothing is known about a file that cannot be analysed"
