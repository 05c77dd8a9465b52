"""From a keystroke to the diagnostics: how long an editor waits for the language server.

A script of 1,000 lines is open, and lines are typed into it character by character, as in an editor: each keystroke is
sent as a change, followed by the question for the diagnostics, and the time until the answer is taken down (so it
includes both pipes and the writing and reading of messages, and no waiting for quiet). Keystrokes after which Python
cannot read the text are cheap, so those after which it can are also reported alone.

    python benchmarks/keystrokes.py
    python benchmarks/keystrokes.py --workspace 1000
    python benchmarks/keystrokes.py --file path/to/train.py --root path/to/project
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import ctypes
import json
import logging
import os
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median, quantiles

from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient
from training_script import training_script

MEDIAN, TAIL = 0.050, 0.150  # seconds: what is asked for
LINES = (  # after a line that holds the first text, the second is typed
    ("images = images.to(device, non_blocking=True)", "        history.append(loss.item())"),
    ("scaler.scale(loss).backward()", "        # keep the norm of the gradient, too"),
    ("x = self.stem(x)", "        x = F.relu(x)"),
    ("optimizer.zero_grad()", "            meters['scale'].update(scaler.get_scale())"),
    ("def main():", "    print('starting', flush=True)"),
    ("import torch.nn.functional as F", "import torchvision.transforms as T"),
)


@dataclass(frozen=True, slots=True)
class Keystroke:
    """One change and its answer."""

    seconds: float
    cpu: float  # seconds of the server's own work, whatever else the machine is doing
    readable: bool


async def type_into(
    text: str, path: Path, root: Path, workspace: str, pause: float, lines: int = len(LINES)
) -> tuple[list[Keystroke], float]:
    """Type so many of the lines into a file, and take them back; also the seconds until the first answer after opening.

    `workspace` is `open` or `all`: whether the other files of the project are checked at the same time. `pause` is the
    time in seconds between an answer and the next keystroke.
    """
    client = LanguageClient("keystrokes", "1")
    await client.start_io(sys.executable, "-m", "torchmemlint", "server")
    diagnostic = lsp.DiagnosticClientCapabilities()
    refreshing = lsp.DiagnosticWorkspaceClientCapabilities(refresh_support=True)
    capabilities = lsp.ClientCapabilities(
        text_document=lsp.TextDocumentClientCapabilities(diagnostic=diagnostic),
        workspace=lsp.WorkspaceClientCapabilities(diagnostics=refreshing),
    )
    folders = [lsp.WorkspaceFolder(root.as_uri(), root.name)]
    options = {"settings": {"workspaceDiagnostics": workspace}}
    await client.initialize_async(
        lsp.InitializeParams(
            capabilities=capabilities, workspace_folders=folders, initialization_options=options, process_id=os.getpid()
        )
    )
    client.initialized(lsp.InitializedParams())
    uri = path.as_uri()
    start = time.perf_counter()
    client.text_document_did_open(lsp.DidOpenTextDocumentParams(lsp.TextDocumentItem(uri, "python", 1, text)))
    question = lsp.DocumentDiagnosticParams(lsp.TextDocumentIdentifier(uri))
    await client.text_document_diagnostic_async(question)
    opened = time.perf_counter() - start
    strokes = []
    for number, change in enumerate(_changes(text, lines), 2):
        event, after = change
        identifier = lsp.VersionedTextDocumentIdentifier(uri=uri, version=number)
        work, start = _work(client), time.perf_counter()
        client.text_document_did_change(lsp.DidChangeTextDocumentParams(identifier, [event]))
        await client.text_document_diagnostic_async(question)
        seconds, work = time.perf_counter() - start, _work(client) - work
        await asyncio.sleep(pause)
        strokes.append(Keystroke(seconds, work, _reads(after)))
    await client.shutdown_async(None)
    client.exit(None)
    await client.stop()
    return strokes, opened


def _work(client: LanguageClient) -> float:
    """Seconds of processor time that the server has taken so far, in all its threads, those that ended included.

    The clock of the process is asked (`clock_getcpuclockid(3)`): the files of its threads in `/proc` may vanish while
    they are read, and their time with them.
    """
    clock = ctypes.c_int()
    error = ctypes.CDLL(None).clock_getcpuclockid(client._server.pid, ctypes.byref(clock))
    if error:
        raise OSError(error, os.strerror(error))
    return time.clock_gettime(clock.value)


def _changes(text: str, lines: int):
    """The keystrokes, each with the text after it."""
    for anchor, line in LINES[:lines]:
        row = next((n for n, have in enumerate(text.split("\n")) if anchor in have), None)
        if row is None:  # a file of the user's: somewhere in it
            row = text.count("\n") * (LINES.index((anchor, line)) + 1) // (len(LINES) + 1)
            have = text.split("\n")[row]
            line = have[: len(have) - len(have.lstrip())] + line.strip()
        before = text
        at = lsp.Position(row, len(text.split("\n")[row]))
        yield _insert(text, at, "\n")
        text = _inserted(text, at, "\n")
        for column, character in enumerate(line):
            at = lsp.Position(row + 1, column)
            yield _insert(text, at, character)
            text = _inserted(text, at, character)
        whole = lsp.TextDocumentContentChangePartial(
            lsp.Range(lsp.Position(row, len(before.split("\n")[row])), lsp.Position(row + 1, len(line))), ""
        )
        yield whole, before
        text = before


def _insert(text: str, at: lsp.Position, new: str):
    return lsp.TextDocumentContentChangePartial(lsp.Range(at, at), new), _inserted(text, at, new)


def _inserted(text: str, at: lsp.Position, new: str) -> str:
    rows = text.split("\n")
    rows[at.line] = rows[at.line][: at.character] + new + rows[at.line][at.character :]
    return "\n".join(rows)


def _reads(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def summary(strokes: list[Keystroke]) -> dict[str, float]:
    """Median and 95th percentile of the time and of the server's work, in milliseconds."""
    found: dict[str, float] = {"keystrokes": len(strokes)}
    for name in ("seconds", "cpu"):
        values = [getattr(stroke, name) * 1000 for stroke in strokes]
        found |= {f"{name} median": median(values), f"{name} p95": quantiles(values, n=20)[-1]}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--file", type=Path, help="a file to type into, instead of the made-up script")
    parser.add_argument("--root", type=Path, help="the project that it belongs to")
    parser.add_argument("--rows", type=int, default=1000, help="of the made-up script")
    parser.add_argument("--workspace", type=int, default=0, help="so many other files, checked at the same time")
    parser.add_argument("--lines", type=int, default=len(LINES), help="how many are typed (default %(default)s)")
    parser.add_argument("--pause", type=float, default=0.5, help="seconds between keystrokes")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    logging.disable()
    with tempfile.TemporaryDirectory() as folder:
        root = (options.root or Path(folder)).resolve()
        path = options.file.resolve() if options.file else root / "train.py"
        text = path.read_text(encoding="utf-8") if options.file else training_script(options.rows)
        for number in range(options.workspace):
            other = training_script(300 + number % 200).replace("Segmenter", f"Segmenter{number}")
            (root / f"module_{number}.py").write_text(other, encoding="utf-8")
        workspace = "all" if options.workspace else "open"
        strokes, opened = asyncio.run(type_into(text, path, root, workspace, options.pause, options.lines))
    ast_parse = []
    for _ in range(5):
        start = time.perf_counter()
        ast.parse(text)
        ast_parse.append(time.perf_counter() - start)
    result = {
        "rows": text.count("\n"),
        "opened": opened * 1000,
        "ast.parse": median(ast_parse) * 1000,
        "all": summary(strokes),
        "readable": summary([stroke for stroke in strokes if stroke.readable]),
    }
    if options.json:
        print(json.dumps(result | {"strokes": [asdict(stroke) for stroke in strokes]}))
        return
    print(f"{path.name}: {result['rows']} rows; ast.parse takes {result['ast.parse']:.1f} ms")
    print(f"opened: first diagnostics after {result['opened']:.0f} ms")
    for name in ("all", "readable"):
        found = result[name]
        print(f"{name} keystrokes: {found['keystrokes']}")
        for words, key in (("until the answer", "seconds"), ("the server's work", "cpu")):
            print(f"  {words}: median {found[f'{key} median']:.0f} ms, 95 % within {found[f'{key} p95']:.0f} ms")
    print(f"asked for: median {MEDIAN * 1000:.0f} ms, 95 % within {TAIL * 1000:.0f} ms")


if __name__ == "__main__":
    main()
