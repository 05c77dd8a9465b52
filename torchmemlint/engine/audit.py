"""Suppression comments that silence nothing (TML001) or name no rule (TML002)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from torchmemlint.codes import OWN
from torchmemlint.findings import Applicability, Edit, Finding, Fix, Position, Span
from torchmemlint.rules import registry
from torchmemlint.source.decoding import lines_of
from torchmemlint.source.directives import CodeReference, Directive, Scope, find_directives
from torchmemlint.source.suppressions import Catalogue, rows_of, split

UNUSED, UNKNOWN = "TML001", "TML002"


def catalogue(plugins: tuple[str, ...] = ()) -> Catalogue:
    """What suppression comments may refer to, with the plugins that `plugins` names."""
    known = registry.known(plugins)
    names = {rule.code: rule.name for rule in known.rules}
    return Catalogue(names, frozenset(rule.code for rule in known.rules if rule.on), known.letters)


def suppress(
    text: str, path: Path, findings: Sequence[Finding], ran: Collection[str], known: Catalogue, *, noqa: bool = True
) -> list[Finding]:
    """Drop the findings that comments silence; add TML001 and TML002 where these rules are in `ran`.

    A code of a rule that did not run is never called unused. `noqa`: do comments in that language count?
    """
    directives = find_directives(
        text, frozenset(row for finding in findings for row in rows_of(finding)), known.letters
    )
    if not noqa:
        directives = tuple(directive for directive in directives if directive.scope is not Scope.NOQA)
    if not directives:
        return list(findings)
    kept, used = split(findings, directives, known)
    about: list[Finding] = []
    for directive in directives:
        if UNUSED in ran:
            about += _unused(directive, path, used, frozenset(ran), known, text)
        if UNKNOWN in ran:
            about += _unknown(directive, path, known)
    # A comment that means every rule does not silence what is said about itself.
    about, _ = split(about, [directive for directive in directives if directive.codes is not None], known)
    return kept + about


def _unused(
    directive: Directive,
    path: Path,
    used: frozenset[tuple[Span, str]],
    ran: frozenset[str],
    known: Catalogue,
    text: str,
) -> list[Finding]:
    if directive.scope is Scope.UNKNOWN:
        return []
    if directive.codes is None:
        if directive.scope is Scope.NOQA or (directive.span, "") in used:
            return []
        message = f"Unused suppression: `{directive.word}` silences nothing"
        return [_finding(UNUSED, message, path, directive.span, _removal(directive, text))]
    idle = []
    seen: set[str] = set()
    for reference in directive.codes:
        if reference.text in seen or _is_idle(directive, reference, used, ran, known):
            idle.append(reference)
        seen.add(reference.text)
    if not idle and directive.codes:
        return []
    if len(idle) == len(directive.codes):
        fix, span = _removal(directive, text), directive.span
    else:
        fix, span = _shortening(directive, idle), Span(idle[0].span.start, idle[-1].span.end)
    words = ", ".join(f"`{reference.text}`" for reference in idle) or "an empty list"
    return [_finding(UNUSED, f"Unused suppression: {words} silences nothing here", path, span, fix)]


def _is_idle(
    directive: Directive,
    reference: CodeReference,
    used: frozenset[tuple[Span, str]],
    ran: frozenset[str],
    known: Catalogue,
) -> bool:
    meant = known.codes(reference.text)
    if not meant or meant & {UNUSED, UNKNOWN} or (directive.span, reference.text) in used:
        return False
    return bool(meant & ran) and not (meant & known.default) - ran


def _unknown(directive: Directive, path: Path, known: Catalogue) -> list[Finding]:
    if directive.scope is Scope.UNKNOWN:
        message = f"Unknown directive `{directive.word}`: a suppression is `ignore[CODE]` or `ignore-file[CODE]`"
        return [_finding(UNKNOWN, message, path, directive.span, None)]
    found = []
    for reference in directive.codes or ():
        if directive.scope is Scope.NOQA and not reference.text.upper().startswith(OWN):
            continue  # another tool's code, as any unknown one may be that begins like a plugin's
        if not known.codes(reference.text):
            nearest = known.nearest(reference.text)
            hint = f"; did you mean `{nearest}`?" if nearest else ""
            message = f"Unknown rule `{reference.text}` in a suppression{hint}"
            fix = None
            if nearest:
                edit = Edit(reference.span, nearest)
                fix = Fix(f"Replace by `{nearest}`", Applicability.HINT, (edit,))
            found.append(_finding(UNKNOWN, message, path, reference.span, fix))
    return found


def _removal(directive: Directive, text: str) -> Fix:
    """Take the directive away: with its line if that is all there is, with the blanks before it otherwise."""
    row, start = directive.row, directive.span.start.column
    lines = lines_of(text)
    line = lines[row - 1]
    if directive.own_line and directive.alone:
        at_end = row == len(lines) and not text.endswith(("\n", "\r"))
        span = Span(Position(row, 1), Position(row, len(line) + 1) if at_end else Position(row + 1, 1))
    else:
        before, after = line[: start - 1], line[directive.span.end.column - 1 :]
        if not after:
            start = len(before.rstrip()) + 1
        span = Span(Position(row, start), directive.span.end)
    return Fix("Remove the unused suppression", Applicability.SAFE, (Edit(span, ""),))


def _shortening(directive: Directive, idle: Sequence[CodeReference]) -> Fix:
    """Rewrite the list of codes without the idle ones."""
    codes = directive.codes or ()
    kept = ", ".join(reference.text for reference in codes if reference not in idle)
    edit = Edit(Span(codes[0].span.start, codes[-1].span.end), kept)
    return Fix("Remove the unused codes", Applicability.SAFE, (edit,))


def _finding(code: str, message: str, path: Path, span: Span, fix: Fix | None) -> Finding:
    rule = registry.by_code()[code]
    return Finding(code, rule.name, rule.severity, message, path, span, span, (), fix, rule.why)
