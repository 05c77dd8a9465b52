"""Real code to check: that of torch, where it is installed, which is not imported for it."""

from importlib.util import find_spec
from pathlib import Path


def torch_files(*patterns: str) -> list[Path]:
    """The files of torch that match one of the patterns, in order; none where there is no torch."""
    found = find_spec("torch")
    if found is None or found.origin is None:
        return []
    folder = Path(found.origin).parent
    return sorted(path for pattern in patterns for path in folder.glob(pattern))
