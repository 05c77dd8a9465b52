"""torchmemlint: a static linter for GPU-memory anti-patterns in PyTorch code.

The names below are the Python API, described in `docs/api.md`. They are loaded when they are first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchmemlint.api import CheckError, FixedSource, RolledBack, check_paths, check_source, fix_source
    from torchmemlint.config.errors import ConfigError
    from torchmemlint.doubts import Confidence, Doubt
    from torchmemlint.findings import Applicability, Edit, Evidence, Finding, Fix, Position, Severity, Span

__version__ = "0.1.0"

__all__ = [
    "Applicability",
    "CheckError",
    "Confidence",
    "ConfigError",
    "Doubt",
    "Edit",
    "Evidence",
    "Finding",
    "Fix",
    "FixedSource",
    "Position",
    "RolledBack",
    "Severity",
    "Span",
    "__version__",
    "check_paths",
    "check_source",
    "fix_source",
]

_HOMES = {
    **dict.fromkeys(
        ("CheckError", "FixedSource", "RolledBack", "check_paths", "check_source", "fix_source"), "torchmemlint.api"
    ),
    **dict.fromkeys(
        ("Applicability", "Edit", "Evidence", "Finding", "Fix", "Position", "Severity", "Span"),
        "torchmemlint.findings",
    ),
    **dict.fromkeys(("Confidence", "Doubt"), "torchmemlint.doubts"),
    "ConfigError": "torchmemlint.config.errors",
    # What `%load_ext torchmemlint` calls; not for programs.
    **dict.fromkeys(("load_ipython_extension", "unload_ipython_extension"), "torchmemlint.ipython_extension"),
}


if not TYPE_CHECKING:  # with it, type checkers would take any name for one of ours

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import importlib

        value = globals()[name] = getattr(importlib.import_module(_HOMES[name]), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
