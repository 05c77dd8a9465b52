"""Our own rules as a list tells them, so that their modules, and the analysis behind these, are imported only to check.

A run that takes all results from earlier ones, or only asks which rules are on, needs no more. `rules.json` beside this
module is the list, written by `tools/documents.py`; it is believed only as long as it was made of the modules that are
there.
"""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from torchmemlint.findings import Applicability, Finding, Severity
from torchmemlint.rules.base import Rule, Tag

if TYPE_CHECKING:
    from torchmemlint.flow.facts import FileFacts

LIST = Path(__file__).with_name("rules.json")


class Listed(Rule):
    """A rule that is imported when it is asked for more than its metadata."""

    place: ClassVar[tuple[str, str]]  # module and class

    @cached_property
    def whole(self) -> Rule:
        """The rule itself."""
        module, name = self.place
        found: Rule = getattr(importlib.import_module(module), name)()
        return found

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """As the rule itself."""
        return self.whole.check(facts)


def whole(rule: Rule) -> Rule:
    """The rule itself."""
    return rule.whole if isinstance(rule, Listed) else rule


def read() -> tuple[Rule, ...] | None:
    """The rules of the list; None where it is not of the modules that are there."""
    try:
        told = json.loads(LIST.read_text(encoding="utf-8"))
        if told["modules"] != _digest():
            return None
        return tuple(_listed(one) for one in told["rules"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def text(rules: Iterable[Rule]) -> str:
    """The list of some rules."""
    return json.dumps({"modules": _digest(), "rules": [_told(rule) for rule in rules]}, indent=1) + "\n"


def _told(rule: Rule) -> dict[str, Any]:
    kind = type(whole(rule))
    return {
        "module": kind.__module__,
        "class": kind.__qualname__,
        "code": rule.code,
        "name": rule.name,
        "severity": rule.severity.value,
        "on": rule.on,
        "fix": rule.fix.value if rule.fix is not None else None,
        "tag": rule.tag.value if rule.tag is not None else None,
        "why": rule.why,
    }


def _listed(told: dict[str, Any]) -> Rule:
    members = {
        "place": (told["module"], told["class"]),
        "code": told["code"],
        "name": told["name"],
        "severity": Severity(told["severity"]),
        "on": told["on"],
        "fix": Applicability(told["fix"]) if told["fix"] is not None else None,
        "tag": Tag(told["tag"]) if told["tag"] is not None else None,
        "why": told["why"],
    }
    rule: Rule = type(told["class"], (Listed,), members)()
    return rule


def _digest() -> str:
    """Of the modules of all rules, whatever their newlines are."""
    found = hashlib.blake2b(digest_size=16)
    for path in sorted(Path(__file__).parent.glob("*/*.py")):
        found.update(f"{path.parent.name}/{path.name}\0".encode())
        found.update(path.read_bytes().replace(b"\r\n", b"\n"))
    return found.hexdigest()
