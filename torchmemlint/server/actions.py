"""Code actions: fix, ignore, explain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lsprotocol import types as lsp

from torchmemlint.findings import Applicability, Edit, Finding
from torchmemlint.fixes.edits import EditError
from torchmemlint.fixes.eligibility import eligible
from torchmemlint.server import comments
from torchmemlint.server.diagnostics import SOURCE, Presenter
from torchmemlint.server.edits import edits_of, unit_edits
from torchmemlint.server.pages import EXPLAIN
from torchmemlint.server.session import Checked, Session, Unit

FIX_ALL = f"{lsp.CodeActionKind.SourceFixAll.value}.{SOURCE}"
KINDS: list[lsp.CodeActionKind | str] = [lsp.CodeActionKind.QuickFix, FIX_ALL]


class Actions:
    """Offers code actions, and works out what they change when one is chosen."""

    def __init__(self, session: Session, presenter: Presenter, capabilities: lsp.ClientCapabilities) -> None:
        self._session = session
        self._presenter = presenter
        workspace = capabilities.workspace
        edit = workspace.workspace_edit if workspace is not None else None
        self._versioned = bool(edit is not None and edit.document_changes)
        documents = capabilities.text_document
        ability = documents.code_action if documents is not None else None
        resolving = ability.resolve_support if ability is not None else None
        self._resolves = resolving is not None and "edit" in resolving.properties

    async def offer(self, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        """The actions for a range of a document."""
        uri = params.text_document.uri
        checked = await self._session.check(uri)
        if checked is None or uri not in checked.unit.uris:
            return []
        only = [str(getattr(kind, "value", kind)) for kind in params.context.only or ()]
        actions: list[lsp.CodeAction] = []
        if _wants(only, "quickfix"):
            actions += self._quick_fixes(checked, uri, params.range)
        if _wants(only, FIX_ALL) and self._session.folders.of(checked.unit.path).settings.fix_all:
            actions += self._fix_all(checked, uri)
        if not self._resolves:
            actions = [await self.resolve(action) for action in actions]
            actions = [action for action in actions if action.edit is not None or action.command is not None]
        return actions

    async def resolve(self, action: lsp.CodeAction) -> lsp.CodeAction:
        """The action with its edit; without one where it would do harm, or the text has moved on."""
        data: Any = action.data
        if action.edit is not None or not isinstance(data, Mapping) or "do" not in data:
            return action
        edit, refused = await self.edit_for(str(data.get("uri")), data)
        action.edit = edit
        if edit is None and refused:
            action.disabled = lsp.CodeActionDisabled(refused)
        return action

    async def fix_all(self, uri: str) -> lsp.WorkspaceEdit | None:
        """The edit that makes all safe fixes of a document; None where there are none."""
        edit, _ = await self.edit_for(uri, {"do": "all"})
        return edit

    async def edit_for(self, uri: str, data: Mapping[str, Any]) -> tuple[lsp.WorkspaceEdit | None, str]:
        """The edit of an action, or why there is none."""
        wanted, unsafe = _wanted(data)
        fixed = await self._session.fix(uri, wanted, unsafe=unsafe)
        if fixed is None:
            return None, "the text has changed"
        unit, result = fixed
        now = self._session.unit(uri)
        if now is None or now.key != unit.key:
            return None, "the text has changed"
        if not result.applied:
            reasons = [reason for _, reason in result.rolled_back]
            return None, reasons[0] if reasons else "there is nothing to fix any more"
        changes = unit_edits(unit, result.text, self._presenter.encoding)
        return (None, "the change goes over the border of a cell") if changes is None else (self._edit(changes), "")

    # ------------------------------------------------------------------------------------------------------------

    def _quick_fixes(self, checked: Checked, uri: str, where: lsp.Range) -> Iterator[lsp.CodeAction]:
        here = [(f, d) for f, d in self._presenter.of_unit(checked)[uri] if _touch(d.range, where)]
        fixable = Counter(f.code for f in checked.findings if eligible(f, unsafe=False))
        for finding, diagnostic in here:
            if eligible(finding, unsafe=True):
                yield self._fix_one(finding, diagnostic, uri)
        codes: dict[str, lsp.Diagnostic] = {}
        for finding, diagnostic in here:
            codes.setdefault(finding.code, diagnostic)
        for code, diagnostic in codes.items():
            if fixable[code] > 1:
                title = f"Fix all {code} in this file"
                yield _action(title, [diagnostic], {"do": "rule", "uri": uri, "code": code})
        for finding, diagnostic in here:
            line = comments.ignore_line(finding, checked.unit.text)
            if line is not None:
                yield from self._ignore(f"Ignore {finding.code} on this line", line, checked.unit, diagnostic)
        for code, diagnostic in codes.items():
            edit = comments.ignore_file(code, checked.unit.text)
            yield from self._ignore(f"Ignore {code} in this file", edit, checked.unit, diagnostic)
        for code, diagnostic in codes.items():
            title = f"Explain {code}"
            yield lsp.CodeAction(
                title,
                lsp.CodeActionKind.QuickFix,
                diagnostics=[diagnostic],
                command=lsp.Command(title, EXPLAIN, arguments=[code]),
            )

    def _fix_one(self, finding: Finding, diagnostic: lsp.Diagnostic, uri: str) -> lsp.CodeAction:
        assert finding.fix is not None
        safe = finding.fix.applicability is Applicability.SAFE
        note = "" if safe else " (unsafe: may change results)"
        title = f"Fix {finding.code}: {' '.join(finding.fix.message.split())}{note}"
        data = {"do": "one", "uri": uri, "code": finding.code, "fingerprint": finding.fingerprint, "unsafe": not safe}
        return _action(title, [diagnostic], data, preferred=safe or None)

    def _fix_all(self, checked: Checked, uri: str) -> Iterator[lsp.CodeAction]:
        fixable = [finding for finding in checked.findings if eligible(finding, unsafe=False)]
        if fixable:
            title = "Fix all memory problems that torchmemlint can fix safely"
            yield lsp.CodeAction(title, FIX_ALL, data={"do": "all", "uri": uri})

    def _ignore(self, title: str, edit: Edit, unit: Unit, diagnostic: lsp.Diagnostic) -> Iterator[lsp.CodeAction]:
        try:
            changes = edits_of(unit, [edit], self._presenter.encoding)
        except EditError:
            return
        if changes:
            yield lsp.CodeAction(title, lsp.CodeActionKind.QuickFix, diagnostics=[diagnostic], edit=self._edit(changes))

    def _edit(self, changes: dict[str, list[lsp.TextEdit]]) -> lsp.WorkspaceEdit:
        if not self._versioned:
            return lsp.WorkspaceEdit(changes=changes)
        documents = []
        for uri, edits in changes.items():
            document = self._session.documents.get(uri)
            version = document.version if document is not None else None
            identifier = lsp.OptionalVersionedTextDocumentIdentifier(uri, version)
            documents.append(lsp.TextDocumentEdit(identifier, list(edits)))
        return lsp.WorkspaceEdit(document_changes=list(documents))


def _wanted(data: Mapping[str, Any]) -> tuple[Callable[[Finding], bool], bool]:
    """Which findings an action is about, and whether its fix may be an unsafe one."""
    match data.get("do"):
        case "one":
            code, mark = data.get("code"), data.get("fingerprint")
            return lambda finding: finding.code == code and finding.fingerprint == mark, bool(data.get("unsafe"))
        case "rule":
            code = data.get("code")
            return lambda finding: finding.code == code, False
        case _:
            return lambda finding: True, False


def _action(
    title: str, diagnostics: list[lsp.Diagnostic], data: dict[str, Any], *, preferred: bool | None = None
) -> lsp.CodeAction:
    return lsp.CodeAction(
        title, lsp.CodeActionKind.QuickFix, diagnostics=diagnostics, is_preferred=preferred, data=data
    )


def _wants(only: list[str], kind: str) -> bool:
    """Does a client that asks for these kinds (none: for all) want this one? A kind includes what begins with it."""
    return not only or any(kind == wanted or kind.startswith(f"{wanted}.") for wanted in only)


def _touch(one: lsp.Range, other: lsp.Range) -> bool:
    return one.start <= other.end and other.start <= one.end
