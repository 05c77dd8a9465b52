"""A memory budget: what each program, or each test, may take. Knows nothing of torch; bytes.

["train.py"]
peak = "4 GiB"
growth = "0 B"    # from step to step

["tests/test_train.py::test_epoch"]
peak = "64 MiB"
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from torchmemlint.config.errors import ConfigError, nearest
from torchmemlint.config.layers import read_toml
from torchmemlint.immutable import immutable
from torchmemlint.sizes import parse_size


@immutable()
class Budget:
    """What one program may take: at the peak, and more with each step; None is no limit."""

    peak: int | None = None
    growth: int | None = None


def read_budget(path: Path) -> dict[str, Budget]:
    """The budgets of a TOML file, by the program as it is called or the test's node id. Raises ConfigError."""
    return {name: _budget(path, name, values) for name, values in read_toml(path).items()}


def _budget(path: Path, name: str, values: Any) -> Budget:
    known = [field.name for field in fields(Budget)]
    if not isinstance(values, Mapping) or not values:
        raise ConfigError(f"{path}: {name!r} must be a table with {' or '.join(known)}")
    for key, value in values.items():
        if key not in known:
            meant = nearest(key, known)
            raise ConfigError(f"{path}: {name!r} has no {key!r}{f' (did you mean {meant!r}?)' if meant else ''}")
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise ConfigError(f"{path}: {key} of {name!r} must be a size such as '4 GiB' or a number of bytes")
    try:
        return Budget(**{key: parse_size(value) for key, value in values.items()})
    except ValueError as error:
        raise ConfigError(f"{path}: {name!r}: {error}") from None
