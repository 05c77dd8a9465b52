"""TML001 unused-ignore."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Severity
from torchmemlint.rules.base import SilentRule, Tag


class UnusedIgnore(SilentRule):
    """A suppression comment silences nothing.

    ## What it does
    Reports a `# torchmemlint: ignore` or `# torchmemlint: ignore-file` comment, or a code of ours in a `# noqa`
    comment, that no longer silences any finding.

    ## Why it costs memory
    A comment that is left behind when the code beneath it was mended hides the next leak on that line.

    ## Example
    ```python
    total += loss.item()  # torchmemlint: ignore[TML101]
    ```

    ## Use instead
    ```python
    total += loss.item()
    ```

    ## Fix safety
    The fix is safe: it takes away the unused codes, or the whole comment with its justification where no code
    of it is used. Other tools' comments on the line stay.

    ## When it stays silent
    For codes of rules that did not run (because they are not selected, or ignored for the file), for a `# noqa`
    without codes and for other tools' codes, and where the comment itself lists `TML001`.

    ## References
    - [Suppression comments](https://torchmemlint.readthedocs.io/suppressions/)
    """

    code = "TML001"
    name = "unused-ignore"
    severity = Severity.WARNING
    fix = Applicability.SAFE
    tag = Tag.UNNECESSARY
    why = "a suppression that silences nothing hides the next leak on its line"
