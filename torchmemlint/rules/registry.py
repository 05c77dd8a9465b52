"""All rules, by code and by name. What needs a rule itself asks `listed.whole` for it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from torchmemlint.immutable import immutable
from torchmemlint.rules import listed
from torchmemlint.rules.base import Rule

if TYPE_CHECKING:
    from torchmemlint.rules.extensions import Plugin


@immutable(eq=False)
class RuleSet:
    """The rules that a configuration may speak of: our own, and those of plugins."""

    rules: tuple[Rule, ...]  # ordered: our own by code, then those of plugins by code
    by_code: Mapping[str, Rule]
    by_name: Mapping[str, Rule]
    brought_by: Mapping[str, str]  # code of a plugin's rule -> the plugin, as messages name it
    letters: frozenset[str]  # what codes begin with


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule of our own, ordered by code."""
    return listed.read()


@cache
def by_code() -> dict[str, Rule]:
    """Code (TML101) to rule, of our own ones."""
    return {rule.code: rule for rule in all_rules()}


@cache
def by_name() -> dict[str, Rule]:
    """Name (graph-accumulation) to rule, of our own ones."""
    return {rule.name: rule for rule in all_rules()}


def own() -> RuleSet:
    """Our own rules alone."""
    return _together(all_rules(), ())


def known(plugins: tuple[str, ...] = ()) -> RuleSet:
    """Our own rules, those of installed plugins, and those that `plugins` names.

    Raises `PluginError` for a plugin that cannot be used.
    """
    from torchmemlint.rules import extensions

    brought = (*extensions.installed(), *(extensions.extension(name) for name in plugins))
    return _together(all_rules(), brought)


def find(word: str) -> Rule | None:
    """The rule of a code or name, whichever configuration of this process brings it."""
    found = by_code().get(word) or by_name().get(word)
    return found or next((rule for rule in all_known() if word in (rule.code, rule.name)), None)


def all_known() -> list[Rule]:
    """Our own rules and those of all plugins that this process has loaded."""
    from torchmemlint.rules import extensions

    return list(dict.fromkeys((*all_rules(), *(rule for plugin in extensions.loaded() for rule in plugin.rules))))


@lru_cache(maxsize=16)
def _together(own: tuple[Rule, ...], plugins: tuple[Plugin, ...]) -> RuleSet:
    from torchmemlint.rules.extensions import PluginError

    by_code = {rule.code: rule for rule in own}
    by_name = {rule.name: rule for rule in own}
    brought: dict[str, str] = {}
    for plugin in plugins:
        for rule in plugin.rules:
            if (known := by_code.get(rule.code)) is not None and type(rule) is type(listed.whole(known)):
                continue  # the same rule in two ways
            for table, key in ((by_code, rule.code), (by_name, rule.name)):
                if (other := table.get(key)) is not None:
                    owner = brought.get(other.code, "torchmemlint itself")
                    raise PluginError(
                        f"two rules are called `{key}`: {_named(other, owner)}, and {_named(rule, plugin.title)}"
                    )
            by_code[rule.code] = by_name[rule.name] = rule
            brought[rule.code] = plugin.title
    rules = (*own, *sorted((by_code[code] for code in brought), key=lambda rule: rule.code))
    letters = frozenset(rule.code.rstrip("0123456789") for rule in rules)
    return RuleSet(rules, by_code, by_name, brought, letters)


def _named(rule: Rule, owner: str) -> str:
    return f"`{type(rule).__qualname__}` of {owner}"
