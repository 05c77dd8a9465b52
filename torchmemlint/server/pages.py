"""Rule pages in the editor: hovers, completions, explanations."""

from __future__ import annotations

from collections.abc import Sequence

from lsprotocol import types as lsp

from torchmemlint.codes import is_own
from torchmemlint.findings import Finding
from torchmemlint.report.message import message_of, rule_url
from torchmemlint.rules import docs, registry
from torchmemlint.rules.base import Rule
from torchmemlint.server import comments

MOST = 3  # findings shown at one place
EXPLAIN = "torchmemlint.server.explain"
TRIGGERS = ["[", ",", " "]


def rule_of(reference: str) -> Rule | None:
    """The rule of a code or name."""
    return registry.find(reference.upper()) or registry.find(reference.lower())


def page(code: str) -> str | None:
    """The page of a rule in Markdown, None where there is no such rule."""
    rule = rule_of(code)
    if rule is None:
        return None
    text = docs.to_markdown(docs.page(rule))
    return f"{text}\n[{rule.code} in the documentation]({rule_url(rule.code)})\n" if is_own(rule.code) else text


def hover(findings: Sequence[tuple[Finding, lsp.Range]], line: str, row: int, column: int) -> lsp.Hover | None:
    """What a place has to say: a rule's code in a comment, or the findings there.

    `column` counts characters of `line` from 0.
    """
    named = comments.code_at(line, column)
    if named is not None and (text := page(named[0])) is not None:
        return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, text))
    if not findings:
        return None
    text = "\n\n---\n\n".join(summary(finding) for finding, _ in findings[:MOST])
    if len(findings) > MOST:
        text += f"\n\n---\n\n{len(findings) - MOST} more"
    return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, text), range=findings[0][1])


def summary(finding: Finding) -> str:
    """A finding in a few lines of Markdown: its message, and a link to the page of its rule."""
    message = message_of(finding)
    head = f"**{finding.code}** {finding.name} ({finding.severity.value})"
    notes = "\n".join(f"- {note.line}" for note in message.notes(url=False))
    return "\n\n".join(part for part in (head, message.what, notes, f"[Learn more]({message.url})") if part)


def lenses(findings: Sequence[tuple[Finding, lsp.Range]]) -> list[lsp.CodeLens]:
    """What findings cost, above their lines; a click shows the page of the rule."""
    found = []
    for finding, where in findings:
        cost = message_of(finding).cost
        if cost is not None:
            command = lsp.Command(f"{cost.brief} ({cost.basis.value})", EXPLAIN, arguments=[finding.code])
            found.append(lsp.CodeLens(where, command))
    return found


def completions(line: str, position: lsp.Position) -> list[lsp.CompletionItem]:
    """The codes that may be written at the end of `line`, the text up to `position`."""
    found = comments.unfinished(line)
    if found is None:
        return []
    where = lsp.Range(lsp.Position(position.line, position.character - len(found.word)), position)
    return [
        lsp.CompletionItem(
            label=rule.code,
            kind=lsp.CompletionItemKind.Value,
            detail=rule.name,
            label_details=lsp.CompletionItemLabelDetails(description=rule.name),
            filter_text=f"{rule.code} {rule.name}",
            text_edit=lsp.TextEdit(where, rule.code),
            data={"code": rule.code},
        )
        for rule in registry.all_known()
        if rule.code not in found.others
    ]


def documented(item: lsp.CompletionItem) -> lsp.CompletionItem:
    """A completion with its rule's page."""
    data = item.data
    text = page(str(data["code"])) if isinstance(data, dict) and "code" in data else None
    if text is not None:
        item.documentation = lsp.MarkupContent(lsp.MarkupKind.Markdown, text)
    return item
