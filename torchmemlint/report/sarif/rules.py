"""Rules as SARIF describes them, within the limits of code scanning."""

from __future__ import annotations

import re
from typing import Any

from torchmemlint.findings import Finding, Severity
from torchmemlint.report.message import rule_url

LONGEST = 1024  # characters of a description
LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.ADVICE: "note"}
_PROBLEMS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.ADVICE: "recommendation"}
_PRECISIONS = {Severity.ERROR: "high", Severity.WARNING: "high", Severity.ADVICE: "medium"}
_FAMILIES = {
    "0": "run",
    "1": "graphs",
    "2": "gradient-mode",
    "3": "activations",
    "4": "data-loading",
    "5": "allocation",
    "6": "training-step",
    "7": "frameworks",
    "8": "owners",
}
_SENTENCE = re.compile(r"(?<=[.!?])\s+")


def describe(finding: Finding) -> dict[str, Any]:
    """The rule of a finding; what the finding itself says of it where there is no page."""
    return of_rule(finding.code) or described(finding.code, finding.name, finding.severity, finding.why)


def of_rule(code: str) -> dict[str, Any] | None:
    """A rule by its code; None where none is registered."""
    from torchmemlint.rules import docs, registry

    rule = registry.find(code)
    if rule is None:
        return None
    short = described(rule.code, rule.name, rule.severity, rule.why)
    try:
        page = docs.page(rule)
    except docs.PageError:
        return short
    markdown = docs.to_markdown(page)
    said = " ".join(f"{page.what_it_does} {page.why_it_costs_memory}".split())
    return {
        **short,
        "fullDescription": {"text": shortened(said)},
        "help": {"text": markdown, "markdown": markdown},
    }


def described(code: str, name: str, severity: Severity, why: str) -> dict[str, Any]:
    """A rule of which no more is known than this."""
    title = name.replace("-", " ").capitalize()
    short = {"text": shortened(f"{title}: {why}" if why else title)}
    family = code.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")[:1]
    tags = ["memory", "performance", "pytorch"]
    return {
        "id": code,
        "name": name,
        "shortDescription": short,
        "fullDescription": short,
        "help": short,
        "helpUri": rule_url(code),
        "defaultConfiguration": {"level": LEVELS[severity]},
        "properties": {
            "tags": [*tags, _FAMILIES[family]] if code.startswith("TML") and family in _FAMILIES else tags,
            "precision": _PRECISIONS[severity],
            "problem.severity": _PROBLEMS[severity],
        },
    }


def shortened(text: str) -> str:
    """As many whole sentences as there is room for; of one that is too long, its beginning."""
    kept = ""
    for sentence in _SENTENCE.split(text):
        longer = f"{kept} {sentence}".strip()
        if len(longer) > LONGEST:
            return kept or f"{sentence[: LONGEST - 1]}…"
        kept = longer
    return kept
