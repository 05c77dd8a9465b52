"""A tireless, careless author: random edits to several documents and a notebook, with a model of what they come to."""

from __future__ import annotations

import ast
import asyncio
import random
import tempfile
import time
import warnings
from pathlib import Path

from lsprotocol import types as lsp

from torchmemlint.config.resolver import Resolver
from torchmemlint.engine import context
from torchmemlint.engine.one_file import check_source
from torchmemlint.engine.runner import profile_for
from torchmemlint.findings import Finding
from torchmemlint.report.message import message_of
from torchmemlint.source.cells import program_of

FIXTURES = Path(__file__).parents[2] / "fixtures"
FAMILIES = ("TML101", "TML102", "TML103", "TML104", "TML105", "TML107", "TML201", "TML301", "TML401", "TML501")
HELPER = "helper.py"
PATIENCE = 120  # seconds for the last answers

SNIPPETS = (
    "total += loss\n",
    "losses.append(loss)\n",
    "with torch.no_grad():\n",
    "    loss.backward()\n",
    "loss.backward(retain_graph=True)\n",
    "self.history.append(output)\n",
    "from helper import *\n",
    "import torch\n",
    "import torch.nn as nn\n",
    "def f(x",
    "return ",
    "# torchmemlint: ignore[TML101]",
    "# torchmemlint: ignore-file",
    "lo",
    "ss.ite",
    "m()",
    ".detach()",
    '"""',
    "'",
    "(",
    ")",
    "[",
    "]",
    ":\n    ",
    "\n",
    "\r\n",
    "\t",
    "        ",
    "é€😀",
    "\x0c",
    "\u2028",
    "lambda: ",
    "async ",
    "await ",
    "yield ",
    "class A(nn.Module):\n    pass\n",
    "@torch.no_grad()\n",
    "if True:\n",
    "else:\n",
    "match x:\n    case _:\n        pass\n",
    "\\\n",
    ";",
)
STATEMENTS = (
    "total += loss",
    "total += loss.item()",
    "losses.append(loss)",
    "loss.backward()",
    "loss.backward(retain_graph=True)",
    "optimizer.zero_grad()",
    "model.eval()",
    "out = model(x)",
    "x = x.cuda()",
    "torch.cuda.empty_cache()",
    "with torch.no_grad(): out = model(x)",
    "history[step] = loss",
    "loss = loss.detach()  # torchmemlint: ignore[TML203]",
    "loader = torch.utils.data.DataLoader(data, batch_size=4)",
    "del loss",
    "# a comment",
    "",
)


class Fuzzer:
    """Edits through an `Editor`; keeps its own copy of every text."""

    def __init__(self, editor, seed: int) -> None:
        self.editor = editor
        self.random = random.Random(seed)
        self.texts: dict[str, str] = {}
        self.readable: dict[str, str] = {}  # the last text of each document that Python could read
        self.undo: dict[str, list[str]] = {}
        self.first: dict[str, str] = {}  # what each document began with
        self.cells: list[str] = []
        self.cell_version = 1
        self.notebook = editor.uri("notes.ipynb")
        self.unreadable = 0
        self.sent = 0

    async def open_all(self) -> None:
        """Five files, one of which the others may import, and a notebook."""
        self._open(editor_text(self.random, 2), HELPER)
        for number in range(4):
            self._open("from helper import *\n" + editor_text(self.random, 4), f"file_{number}.py")
        texts = [editor_text(self.random, 1) for _ in range(4)]
        self.cells = [f"notebook:{number}" for number in range(len(texts))]
        for cell, text in zip(self.cells, texts, strict=True):
            self._set(cell, text)
        cells = [lsp.NotebookCell(kind=lsp.NotebookCellKind.Code, document=cell) for cell in self.cells]
        notebook = lsp.NotebookDocument(uri=self.notebook, notebook_type="jupyter-notebook", version=1, cells=cells)
        items = [lsp.TextDocumentItem(cell, "python", 1, self.texts[cell]) for cell in self.cells]
        self.editor.client.notebook_document_did_open(lsp.DidOpenNotebookDocumentParams(notebook, items))

    async def edit(self, times: int) -> None:
        """Make so many edits; now and then ask something, as editors do."""
        for _ in range(times):
            uri = self.random.choice(list(self.texts))
            self._edit(uri)
            self.sent += 1
            if self.random.random() < 0.12:
                await self._ask(uri)
            elif self.sent % 10 == 0:
                await asyncio.sleep(0)

    async def settle(self) -> None:
        """Bring every document back to a text that Python can read."""
        for uri, text in self.texts.items():
            if not reads(text):
                self._send(uri, [lsp.TextDocumentContentChangeWholeDocument(text=self.readable[uri])])
                self.texts[uri] = self.readable[uri]

    async def begin_again(self) -> None:
        """Bring every document back to its first text, so that what is kept of it can be compared."""
        for uri, text in self.first.items():
            self._send(uri, [lsp.TextDocumentContentChangeWholeDocument(text=text)])
            self.texts[uri] = self.readable[uri] = text
            self.undo[uri] = [text]
        assert await self.differences() == []

    async def differences(self) -> list[str]:
        """Where the last answers differ from those of a fresh check of the same texts."""
        expected = self._fresh()
        until = time.monotonic() + PATIENCE
        while True:
            shown = {uri: self._shown(uri) for uri in expected}
            wrong = [uri for uri in expected if shown[uri] != expected[uri]]
            if not wrong or time.monotonic() > until:
                return [f"{uri}: shown {shown[uri]}, expected {expected[uri]}" for uri in wrong]
            await asyncio.sleep(0.2)

    def resident(self) -> int:
        """The server's resident memory, in bytes."""
        process = self.editor.client._server
        for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("no VmRSS")

    # ------------------------------------------------------------------------------------------------------------

    def _open(self, text: str, name: str) -> None:
        uri = self.editor.open(name, text)
        self.editor.write(name, text)
        self._set(uri, text)

    def _set(self, uri: str, text: str) -> None:
        self.texts[uri] = text
        self.first.setdefault(uri, text)
        self.undo.setdefault(uri, []).append(text)
        if reads(text):
            self.readable[uri] = text
        else:
            self.unreadable += 1

    def _edit(self, uri: str) -> None:
        text = self.texts[uri]
        kind = self.random.random()
        if kind < 0.22 and len(self.undo[uri]) > 1:  # undo, one step or many
            del self.undo[uri][-self.random.choice((1, 1, 2, 5)) :]
            after = self.undo[uri].pop() if self.undo[uri] else text
            self._send(uri, [lsp.TextDocumentContentChangeWholeDocument(text=after)])
        elif kind < 0.25 or (kind < 0.6 and text != self.readable[uri] and not reads(text)):
            after = self.readable[uri]
            self._send(uri, [lsp.TextDocumentContentChangeWholeDocument(text=after)])
        elif kind < 0.75:
            start, end, new = self._statement(text)
            where = lsp.Range(place(text, start), place(text, end))
            self._send(uri, [lsp.TextDocumentContentChangePartial(range=where, text=new)])
            after = text[:start] + new + text[end:]
        else:
            changes, after = [], text
            for _ in range(self.random.choice((1, 1, 1, 2, 3))):
                start = self.random.randrange(len(after) + 1)
                if self.random.random() < 0.4:
                    start = after.rfind("\n", 0, start) + 1
                end = min(len(after), start + self.random.choice((0, 0, 0, 1, 1, 2, 5, 30)))
                new = self.random.choice(SNIPPETS) if self.random.random() < 0.8 or start == end else ""
                if _splits_a_line_end(after, start) or _splits_a_line_end(after, end):
                    continue
                where = lsp.Range(place(after, start), place(after, end))
                changes.append(lsp.TextDocumentContentChangePartial(range=where, text=new))
                after = after[:start] + new + after[end:]
            if len(after) > 20_000:
                after = self.readable[uri][:4_000]
                changes = [lsp.TextDocumentContentChangeWholeDocument(text=after)]
            self._send(uri, changes)
        self._set(uri, after)
        del self.undo[uri][:-50]

    def _statement(self, text: str) -> tuple[int, int, str]:
        """A whole line put in, indented as the one below it, or a line taken away: start, end, new text."""
        starts = [0, *(number + 1 for number, character in enumerate(text) if character == "\n")]
        number = self.random.randrange(len(starts))
        start = starts[number]
        end = starts[number + 1] if number + 1 < len(starts) else len(text)
        line = text[start:end]
        if self.random.random() < 0.3:
            return start, end, ""
        indent = line[: len(line) - len(line.lstrip(" "))]
        return start, start, indent + self.random.choice(STATEMENTS) + "\n"

    def _send(self, uri: str, changes: list) -> None:
        if uri not in self.cells:
            version = self.editor.versions[uri] = self.editor.versions[uri] + 1
            identifier = lsp.VersionedTextDocumentIdentifier(uri=uri, version=version)
            self.editor.client.text_document_did_change(lsp.DidChangeTextDocumentParams(identifier, changes))
            return
        self.cell_version += 1
        cell = lsp.VersionedTextDocumentIdentifier(uri=uri, version=self.cell_version)
        content = lsp.NotebookDocumentCellContentChanges(document=cell, changes=changes)
        event = lsp.NotebookDocumentChangeEvent(cells=lsp.NotebookDocumentCellChanges(text_content=[content]))
        identifier = lsp.VersionedNotebookDocumentIdentifier(version=self.cell_version, uri=self.notebook)
        self.editor.client.notebook_document_did_change(lsp.DidChangeNotebookDocumentParams(identifier, event))

    async def _ask(self, uri: str) -> None:
        rows = self.texts[uri].count("\n")
        position = lsp.Position(self.random.randrange(rows + 2), self.random.randrange(30))
        document = lsp.TextDocumentIdentifier(uri)
        match self.random.randrange(4):
            case 0:
                await self.editor.client.text_document_hover_async(lsp.HoverParams(document, position))
            case 1:
                await self.editor.client.text_document_completion_async(lsp.CompletionParams(document, position))
            case _:
                whole = lsp.Range(lsp.Position(0, 0), lsp.Position(rows + 1, 0))
                actions = await self.editor.actions(uri, whole)
                pending = [one for one in actions if isinstance(one, lsp.CodeAction) and one.edit is None]
                if pending and self.random.random() < 0.3:
                    await self.editor.client.code_action_resolve_async(self.random.choice(pending))

    def _shown(self, uri: str) -> list[tuple[str, int, int, int, int, str]]:
        found = self.editor.client.diagnostics.get(uri, ())
        return sorted(
            (one.code, one.range.start.line, one.range.start.character, one.range.end.line, one.range.end.character,
             one.message) for one in found
        )  # fmt: skip

    def _fresh(self) -> dict[str, list[tuple[str, int, int, int, int, str]]]:
        """What a run that knows nothing of the edits says of the last texts, lying on the disk."""
        expected: dict[str, list[tuple[str, int, int, int, int, str]]] = {}
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder).resolve()
            files = {uri: root / uri.rpartition("/")[2] for uri in self.texts if uri not in self.cells}
            for uri, path in files.items():
                path.write_text(self.texts[uri], encoding="utf-8", newline="")
            context.forget()
            settings = Resolver(root, isolated=True).settings_for(root)
            for uri, path in files.items():
                found = check_source(self.texts[uri], path, profile_for(settings, path))
                expected[uri] = sorted(shown(one, self.texts[uri]) for one in found)
            program = program_of([self.texts[cell] for cell in self.cells])
            path = root / "notes.ipynb"
            found = check_source(program.text, path, profile_for(settings, path))
            for number, cell in enumerate(self.cells):
                own = [one for one in found if program.place(one.span.start.row)[0] == number]
                first = program.first_rows[number] - 1
                expected[cell] = sorted(shown(one, program.text, first) for one in own)
        return expected


def shown(finding: Finding, text: str, first_row: int = 0) -> tuple[str, int, int, int, int, str]:
    """A finding as the protocol shows it, in UTF-16 units."""
    rows = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    ends = []
    for end in (finding.span.start, finding.span.end):
        ends += [end.row - 1 - first_row, len(rows[end.row - 1][: end.column - 1].encode("utf-16-le")) // 2]
    message = f"{finding.message}\n{message_of(finding).caveat}" if finding.doubts else finding.message
    return (finding.code, *ends, message)  # type: ignore[return-value]


def editor_text(choice: random.Random, pieces: int) -> str:
    """A file made of some of the rules' fixtures."""
    chosen = []
    for _ in range(pieces):
        (folder,) = FIXTURES.glob(f"{choice.choice(FAMILIES)}-*")
        path = choice.choice(sorted(path for path in folder.glob("*.py")))
        chosen.append(path.read_text(encoding="utf-8"))
    return "\n\n".join(chosen)


def place(text: str, offset: int) -> lsp.Position:
    """The place of an offset in UTF-16 units."""
    rows = text[:offset].replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lsp.Position(len(rows) - 1, len(rows[-1].encode("utf-16-le")) // 2)


def reads(text: str) -> bool:
    """Can Python read it?"""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True


def _splits_a_line_end(text: str, offset: int) -> bool:
    return text[max(offset - 1, 0) : offset + 1] == "\r\n"
