"""Rules of plugins, asked with care: what goes wrong in one is said to be that plugin's fault."""

from __future__ import annotations

import inspect
import sys
import traceback
from pathlib import Path

from torchmemlint.engine.run import RuleFailure
from torchmemlint.findings import Finding, Position, Span
from torchmemlint.flow.facts import FileFacts
from torchmemlint.rules.base import Rule
from torchmemlint.rules.extensions import folders_of
from torchmemlint.source.decoding import UnreadableFile


def guarded(rule: Rule, plugin: str, facts: FileFacts) -> list[Finding]:
    """What a plugin's rule has to say about a file. Raises `RuleFailure`, which names the plugin and its line."""
    try:
        found = list(rule.check(facts))
    except UnreadableFile:  # facts raise it, whoever asks
        raise
    except (Exception, SystemExit) as error:
        words = " ".join(str(error).split())
        where = _raised_at(error, rule)
        raise RuleFailure(f"{rule.code} of {plugin} raised {type(error).__name__} at {where}: {words}") from error
    for finding in found:
        wrong = _wrong_with(finding, rule)
        if wrong:
            raise RuleFailure(f"{rule.code} of {plugin}, at {_defined_at(rule)}, gave {wrong}")
    return found


def _raised_at(error: BaseException, rule: Rule) -> str:
    """The innermost line of the plugin's own files that an exception came through, as `FILE:LINE`."""
    folders = folders_of(rule)
    frames = traceback.extract_tb(error.__traceback__)
    for frame in reversed(frames):
        path = Path(frame.filename)
        if path in folders or any(folder in path.parents for folder in folders):
            return f"{path}:{frame.lineno}"
    return _defined_at(rule)


def _defined_at(rule: Rule) -> str:
    """Where the class of a rule is written; its module where that cannot be told."""
    kind = type(rule)
    try:
        return f"{inspect.getfile(kind)}:{inspect.getsourcelines(kind.check)[1]}"
    except (OSError, TypeError):
        return getattr(sys.modules.get(kind.__module__), "__file__", None) or kind.__module__


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
