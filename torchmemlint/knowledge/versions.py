"""Which names and arguments of torch came, went or were deprecated between 2.0 and now.

Read from `torch_releases.json`, which `tools/torch_releases.py` derives from the sources of the releases themselves.
A *target* is the oldest release that the code supports (`target-torch`); None stands for the newest one known here.
What the data file does not name has been the same since 2.0, or is no name of torch: advice that rests on this module
names only what `has` confirms.

Environment variables are not among the renames on purpose: `PYTORCH_ALLOC_CONF` (in torch's libraries since 2.9) was
meant to replace `PYTORCH_CUDA_ALLOC_CONF`, but 2.9 ignores some of what it says for CUDA (pytorch#183387), while the
old name is still read by all releases.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.resources import files
from typing import Any

from torchmemlint.immutable import immutable

Release = tuple[int, int]


@immutable()
class Retirement:
    """A name of torch that a release deprecated or removed, and what took its place."""

    name: str
    deprecated: Release | None  # the first release that warns; (2, 0) stands for that and all before
    removed: Release | None
    says: str  # torch's own words; "" where it only went away
    instead: str | None  # the qualified name to use
    given: str | None  # an argument that the new name needs besides: `"cuda"`, `device_type="cuda"`
    takes: tuple[str, ...] | None  # names of the old one's parameters in order, keyword-only ones after "*"
    same: bool  # does the new one take them in the same order (after `given`)?


def release(text: str) -> Release:
    """ "2.4.1" as (2, 4)."""
    major, minor, *_ = text.split(".")
    return int(major), int(minor)


def newest() -> Release:
    """The newest release that the data file knows."""
    return release(_data()["releases"][-1])


def has(qualified: str, target: str | None, argument: str | None = None) -> bool:
    """Has the target this name of torch, and does it take that argument?"""
    line = _data()["names"].get(qualified, {})
    at = release_of(target)
    if "removed" in line and release(line["removed"]) <= at:
        return False
    needed = [line["since"]] if "since" in line else []
    if argument is not None and argument in line.get("arguments", {}):
        needed.append(line["arguments"][argument])
    return all(release(version) <= at for version in needed)


def since(qualified: str, argument: str | None = None) -> Release | None:
    """The release that a name, or an argument of it, came with; None where it is as old as 2.0."""
    line = _data()["names"].get(qualified, {})
    version = line.get("since") if argument is None else line.get("arguments", {}).get(argument)
    return release(version) if version else None


@lru_cache(maxsize=256)
def retirement(qualified: str, target: str | None) -> Retirement | None:
    """How a name was retired, where the target can do without it: it has what took its place, or neither has."""
    line = _data()["names"].get(qualified)
    if line is None or not ("deprecated" in line or "removed" in line):
        return None
    deprecated, removed, instead = (line.get(key) for key in ("deprecated", "removed", "instead"))
    begun = release(deprecated or removed)
    at = release_of(target)
    if begun > newest() or (instead is not None and not has(instead, target)):
        return None
    if instead is None and begun > at:
        return None  # the target still needs it
    return Retirement(
        qualified,
        release(deprecated) if deprecated else None,
        release(removed) if removed else None,
        line.get("says", ""),
        instead,
        line.get("with"),
        tuple(line["takes"]) if "takes" in line else None,
        line.get("same", False),
    )


def release_of(target: str | None) -> Release:
    """The oldest release that the code supports."""
    return release(target) if target is not None else newest()


@lru_cache(maxsize=1)
def _data() -> dict[str, Any]:
    text = (files("torchmemlint.knowledge") / "torch_releases.json").read_text(encoding="utf-8")
    data: dict[str, Any] = json.loads(text)
    return data
