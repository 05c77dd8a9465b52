"""Rules of plugins, asked with care: what goes wrong in one is said to be that plugin's fault."""

from __future__ import annotations

from torchmemlint.findings import Finding, Position, Span
from torchmemlint.flow.facts import FileFacts
from torchmemlint.rules.base import Rule
from torchmemlint.source.decoding import UnreadableFile


class RuleFailure(Exception):  # noqa: N818 (it is one)
    """A plugin's rule raised an exception, or gave what is no finding of its own."""


def guarded(rule: Rule, plugin: str, facts: FileFacts) -> list[Finding]:
    """What a plugin's rule has to say about a file. Raises `RuleFailure`, which names the plugin."""
    try:
        found = list(rule.check(facts))
    except UnreadableFile:  # facts raise it, whoever asks
        raise
    except (Exception, SystemExit) as error:
        words = " ".join(str(error).split())
        raise RuleFailure(f"{rule.code} of {plugin} raised {type(error).__name__}: {words}") from error
    for finding in found:
        wrong = _wrong_with(finding, rule)
        if wrong:
            raise RuleFailure(f"{rule.code} of {plugin} gave {wrong}")
    return found


def _wrong_with(finding: object, rule: Rule) -> str:
    if not isinstance(finding, Finding):
        return f"{type(finding).__name__} instead of `Finding`"
    if (finding.code, finding.name) != (rule.code, rule.name):
        return f"a finding of {finding.code} {finding.name}"
    places = [finding.span, finding.statement, *(one.span for one in finding.evidence)]
    if finding.fix is not None:
        places += [edit.span for edit in finding.fix.edits]
    wrong = next((place for place in places if not _is_span(place)), None)
    return "" if wrong is None else f"a place that is none: {wrong}"


def _is_span(place: Span) -> bool:
    return Position(1, 1) <= place.start <= place.end and place.start.column >= 1 and place.end.column >= 1
