"""TML002 unknown-code."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Severity
from torchmemlint.rules.base import SilentRule


class UnknownCode(SilentRule):
    """A suppression comment names a rule that does not exist.

    ## What it does
    Reports a code, prefix or name in a `# torchmemlint: ignore[...]` or `# torchmemlint: ignore-file[...]`
    comment that means no rule, a code that begins with `TML` and means none in a `# noqa` comment, and a
    misspelt directive such as `# torchmemlint: ingore[TML101]`. The message names the nearest right code.

    ## Why it costs memory
    The comment silences nothing. Whoever wrote it believes that it does, or that the code was looked at.

    ## Example
    ```python
    total += loss  # torchmemlint: ignore[TML1O1]
    ```

    ## Use instead
    ```python
    total += loss  # torchmemlint: ignore[TML101]
    ```

    ## Fix safety
    The nearest right code is a hint: it is shown and never applied, since it could silence a true finding.

    ## When it stays silent
    For other tools' codes in `# noqa` comments, and for prose that only begins with the linter's name.

    ## References
    - [Suppression comments](https://torchmemlint.readthedocs.io/suppressions/)
    """

    code = "TML002"
    name = "unknown-code"
    severity = Severity.WARNING
    fix = Applicability.HINT
    why = "a suppression that names no rule silences nothing"
