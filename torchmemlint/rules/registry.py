"""All rules, by code and by name. Modules are imported on first use, so that start-up stays quick."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

import torchmemlint.rules as package
from torchmemlint.rules.base import Rule


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, ordered by code."""
    found: list[Rule] = []
    for family in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
        if not family.ispkg:
            continue
        folder = importlib.import_module(family.name)
        for info in pkgutil.iter_modules(folder.__path__, family.name + "."):
            module = importlib.import_module(info.name)
            found += [
                kind()
                for kind in vars(module).values()
                # Python 3.10 takes an alias such as `tuple[int, ...]` for a class, until it is asked for its bases.
                if isinstance(kind, type) and Rule in kind.__mro__ and kind.__module__ == info.name
            ]
    return tuple(sorted(found, key=lambda rule: rule.code))


@cache
def by_code() -> dict[str, Rule]:
    """Code (TML101) to rule."""
    return {rule.code: rule for rule in all_rules()}


@cache
def by_name() -> dict[str, Rule]:
    """Name (graph-accumulation) to rule."""
    return {rule.name: rule for rule in all_rules()}
