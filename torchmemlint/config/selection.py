"""Selectors (codes, prefixes, names, ALL) and how they combine, as in ruff: the more specific one wins."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from torchmemlint.config.errors import ConfigError, did_you_mean
from torchmemlint.rules import registry

ALWAYS = "TML000"  # a file that cannot be read is reported whatever is selected, unless it is ignored
_EXACT = 100  # specificity of a full code or a name


@dataclass(frozen=True, slots=True)
class Selection:
    """One layer of selectors: a configuration, or the command line."""

    select: tuple[str, ...] | None = None  # None: as in the layer below
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()


def expand(selector: str) -> frozenset[str]:
    """The codes that a selector means; raises `ConfigError` for one that means none."""
    rules = registry.all_rules()
    if selector == "ALL":
        return frozenset(rule.code for rule in rules)
    found = frozenset(rule.code for rule in rules if selector == rule.name)
    if not found and re.fullmatch(r"TML[0-9]*", selector):
        found = frozenset(rule.code for rule in rules if rule.code.startswith(selector))
    if not found:
        known = [word for rule in rules for word in (rule.code, rule.name)]
        raise ConfigError(f"Unknown rule selector `{selector}`.{did_you_mean(selector, [*known, 'ALL'])}")
    return found


def specificity(selector: str) -> int:
    """How narrow a selector is: ALL, then longer and longer prefixes, then full codes and names."""
    if selector == "ALL":
        return 0
    return len(selector) if re.fullmatch(r"TML[0-9]{0,2}", selector) else _EXACT


def enabled(layers: Sequence[Selection]) -> frozenset[str]:
    """The codes that are on after all layers, the first being the weakest.

    Without any `select` these are the rules that are on by default. Within a layer the more specific selector
    wins, and `ignore` wins between equals. A layer with a `select` starts afresh.
    """
    on = {rule.code for rule in registry.all_rules() if rule.on}
    for layer in layers:
        changes: dict[str, bool] = {ALWAYS: True} if layer.select is not None else {}
        for selector, state in _ordered(layer):
            changes.update(dict.fromkeys(expand(selector), state))
        if layer.select is not None:
            on = {code for code, state in changes.items() if state}
        else:
            on |= {code for code, state in changes.items() if state}
            on -= {code for code, state in changes.items() if not state}
    return frozenset(on)


def _ordered(layer: Selection) -> Iterable[tuple[str, bool]]:
    pairs = [(selector, True) for selector in (*(layer.select or ()), *layer.extend_select)]
    pairs += [(selector, False) for selector in layer.ignore]
    return sorted(pairs, key=lambda pair: (specificity(pair[0]), not pair[1]))
