"""Selectors (codes, prefixes, names, ALL) and how they combine, as in ruff: the more specific one wins.

`rules` are the rules that may be spoken of; None stands for our own and those of installed plugins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from torchmemlint.codes import begun_by, digits_of
from torchmemlint.config.errors import ConfigError, did_you_mean
from torchmemlint.config.presets import BY_NAME
from torchmemlint.immutable import immutable
from torchmemlint.rules import registry
from torchmemlint.rules.base import Rule, Stage
from torchmemlint.rules.registry import RuleSet

# About files that cannot be read and comments that silence nothing: reported whatever is selected, unless ignored.
ALWAYS = ("TML000", "TML001", "TML002")
_EXACT = 100  # specificity of a full code or a name


@immutable()
class Selection:
    """One layer of selectors: a configuration, or the command line."""

    select: tuple[str, ...] | None = None  # None: as in the layer below
    extend_select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    preset: str | None = None  # what is on where there is no `select`; None: as in the layer below


def expand(selector: str, rules: RuleSet | None = None) -> frozenset[str]:
    """The codes that a selector means; raises `ConfigError` for one that means none."""
    rules = rules or registry.known()
    if selector == "ALL":
        return frozenset(rules.by_code)
    if selector in rules.by_name:
        return frozenset((rules.by_name[selector].code,))
    found = begun_by(selector, rules.by_code)
    if not found:
        raise ConfigError(f"Unknown rule selector `{selector}`.{did_you_mean(selector, words(rules))}")
    return found


def words(rules: RuleSet) -> list[str]:
    """All that a selector may be, but for prefixes."""
    return [*(word for rule in rules.rules for word in (rule.code, rule.name)), "ALL"]


def specificity(selector: str) -> int:
    """How narrow a selector is: ALL, then longer and longer prefixes, then full codes and names."""
    if selector == "ALL":
        return 0
    digits = digits_of(selector)
    return _EXACT if digits is None or digits > 2 else 1 + digits


@immutable()
class Preview:
    """Whether rules in preview may be on. They are, unless somebody says otherwise."""

    on: bool = True
    explicit: bool = False  # only those that are selected by their own code or name


def enabled(
    layers: Sequence[Selection], rules: RuleSet | None = None, preview: Preview | None = None
) -> frozenset[str]:
    """The codes that are on after all layers, the first being the weakest.

    Without any `select` these are the rules that are on by default. Within a layer the more specific selector
    wins, and `ignore` wins between equals. A layer with a `select` or a preset starts afresh.
    """
    rules = rules or registry.known()
    preview = preview or Preview()
    on = {rule.code for rule in rules.rules if rule.on}
    named: set[str] = set()  # by their own code or name
    for layer in layers:
        if layer.preset is not None:
            on = set(BY_NAME[layer.preset].codes(rules))
        changes = (
            dict.fromkeys((code for code in ALWAYS if code in rules.by_code), True) if layer.select is not None else {}
        )
        for selector, state in _ordered(layer):
            found = expand(selector, rules)
            changes.update(dict.fromkeys(found, state))
            named |= found if specificity(selector) == _EXACT else set()
        on = _changed(set() if layer.select is not None else on, changes)
    early = {rule.code for rule in rules.rules if rule.stage is Stage.PREVIEW}
    if preview.on:
        early -= named if preview.explicit else early
    late = {rule.code for rule in rules.rules if rule.stage is Stage.DEPRECATED}
    return frozenset(on - early - (late - named))


def deprecations(on: frozenset[str], rules: RuleSet) -> tuple[str, ...]:
    """A sentence for each deprecated rule that is on, with what takes its place."""
    return tuple(_farewell(rule, rules) for rule in rules.rules if rule.stage is Stage.DEPRECATED and rule.code in on)


def _farewell(rule: Rule, rules: RuleSet) -> str:
    said = f"rule {rule.code} ({rule.name}) is deprecated and will be removed in a later release"
    if not rule.instead:
        return said
    successor = rules.by_code.get(rule.instead)
    return f"{said}; select {rule.instead}{f' ({successor.name})' if successor is not None else ''} instead"


def allowed(layers: Sequence[Selection], rules: RuleSet) -> frozenset[str]:
    """The codes that layers leave of all, where `select` is what is allowed: all that nothing is said of."""
    on = set(rules.by_code)
    for layer in layers:
        changes: dict[str, bool] = {}
        for selector, state in _ordered(layer):
            changes.update(dict.fromkeys(expand(selector, rules), state))
        on = _changed(set() if layer.select is not None else on, changes)
    return frozenset(on)


def _changed(on: set[str], changes: Mapping[str, bool]) -> set[str]:
    return {code for code in {*on, *changes} if changes.get(code, True)}


def _ordered(layer: Selection) -> Iterable[tuple[str, bool]]:
    pairs = [(selector, True) for selector in (*(layer.select or ()), *layer.extend_select)]
    pairs += [(selector, False) for selector in layer.ignore]
    return sorted(pairs, key=lambda pair: (specificity(pair[0]), not pair[1]))
