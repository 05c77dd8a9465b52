"""Findings as the protocol's diagnostics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from lsprotocol import types as lsp

from torchmemlint.findings import Evidence, Finding, Severity, Span
from torchmemlint.report.message import Message, message_of
from torchmemlint.rules import registry
from torchmemlint.rules.base import Tag
from torchmemlint.server.documents import uri_of
from torchmemlint.server.positions import Places
from torchmemlint.server.session import Checked, Unit

SOURCE = "torchmemlint"
_SEVERITIES = {
    Severity.ERROR: lsp.DiagnosticSeverity.Error,
    Severity.WARNING: lsp.DiagnosticSeverity.Warning,
    Severity.ADVICE: lsp.DiagnosticSeverity.Information,
}
_TAGS = {Tag.UNNECESSARY: lsp.DiagnosticTag.Unnecessary, Tag.DEPRECATED: lsp.DiagnosticTag.Deprecated}

TextOf = Callable[[Path], str]  # of a file, open or not; empty where it cannot be read


class Presenter:
    """Turns what was found into what one client understands."""

    def __init__(self, encoding: str, text_of: TextOf, capabilities: lsp.ClientCapabilities) -> None:
        self.encoding = encoding
        self._text_of = text_of
        documents = capabilities.text_document
        said = (documents.diagnostic if documents is not None else None) or (
            documents.publish_diagnostics if documents is not None else None
        )
        # A client that says nothing of an ability is given what every client knows since version 3.16.
        self._relates = getattr(said, "related_information", None) is not False
        self._tags = getattr(said, "tag_support", None) is not None

    def of_unit(self, checked: Checked) -> dict[str, list[tuple[Finding, lsp.Diagnostic]]]:
        """What a check found, by the document that it belongs to (a notebook has several)."""
        unit = checked.unit
        found: dict[str, list[tuple[Finding, lsp.Diagnostic]]] = {uri: [] for uri in unit.uris}
        places = self._places(unit)
        for finding in checked.all:
            uri, span, here = _where(unit, places, finding.span)
            if here is not None:
                found[uri].append((finding, self._diagnostic(finding, here.range(span), unit, places)))
        return found

    def of_file(self, findings: Sequence[Finding], path: Path) -> list[lsp.Diagnostic]:
        """The diagnostics of a file that is not open."""
        text = self._text_of(path)
        uri = uri_of(path)
        unit = Unit(uri, path, text, (text,), (uri,))
        places = self._places(unit)
        return [self._diagnostic(finding, places[0].range(finding.span), unit, places) for finding in findings]

    def _places(self, unit: Unit) -> list[Places]:
        return [Places(text, self.encoding) for text in unit.texts]

    def _diagnostic(self, finding: Finding, where: lsp.Range, unit: Unit, places: list[Places]) -> lsp.Diagnostic:
        rule = registry.find(finding.code)
        tag = rule.tag if rule is not None else None
        message = message_of(finding)
        return lsp.Diagnostic(
            range=where,
            message="\n".join(_lines(message)),
            severity=_SEVERITIES[finding.severity],
            code=finding.code,
            code_description=lsp.CodeDescription(message.url),
            source=SOURCE,
            tags=[_TAGS[tag]] if tag is not None and self._tags else None,
            related_information=list(self._related(finding, unit, places)) if self._relates else None,
            data={
                "fingerprint": finding.fingerprint,
                "fix": finding.fix.applicability.value if finding.fix else None,
                "confidence": finding.confidence.value,
                "doubts": [doubt.to_json() for doubt in finding.doubts],
            },
        )

    def _related(
        self, finding: Finding, unit: Unit, places: list[Places]
    ) -> Iterator[lsp.DiagnosticRelatedInformation]:
        for evidence in finding.evidence:
            location = self._location(evidence, unit, places)
            if location is not None:
                yield lsp.DiagnosticRelatedInformation(location, evidence.message)

    def _location(self, evidence: Evidence, unit: Unit, places: list[Places]) -> lsp.Location | None:
        if evidence.filename is None or evidence.filename == unit.path:
            uri, span, here = _where(unit, places, evidence.span)
            return lsp.Location(uri, here.range(span)) if here is not None else None
        text = self._text_of(evidence.filename)
        return lsp.Location(uri_of(evidence.filename), Places(text, self.encoding).range(evidence.span))


def _where(unit: Unit, places: list[Places], span: Span) -> tuple[str, Span, Places | None]:
    """The document of a unit that a span lies in, the span there, and that document's places."""
    if unit.cells is None:
        return unit.uri, span, places[0]
    cell, within = unit.cells.place_of(span)
    return (unit.uris[cell], within, places[cell]) if cell < len(places) else (unit.uri, span, None)


def _lines(message: Message) -> Iterator[str]:
    """What a list of problems has room for; the hover has the rest."""
    yield message.what
    if message.doubts:
        yield message.caveat
    if message.cost is not None:
        yield message.cost.line
