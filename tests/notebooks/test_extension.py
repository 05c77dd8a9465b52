"""`%load_ext torchmemlint` in a real IPython, in a process of its own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from tests.report.samples import accumulation
from torchmemlint.doubts import Doubt
from torchmemlint.ipython_extension import Shown
from torchmemlint.report.message import message_of

pytest.importorskip("IPython")

ROOT = Path(__file__).resolve().parents[2]
SESSION = """
import json, sys
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell

shown = []


class Publisher(DisplayPublisher):
    def publish(self, data, metadata=None, **more):
        shown.append({kind: text for kind, text in data.items() if kind in ("text/plain", "text/html")})


shell = InteractiveShell.instance(display_pub_class=Publisher)
cells = json.load(sys.stdin)
outputs = []
for id, source in cells:
    shown.clear()
    result = shell.run_cell(source, store_history=True, cell_id=id)
    outputs.append({"shown": list(shown), "error": repr(result.error_in_exec or result.error_before_exec or "")})
    outputs[-1]["result"] = repr(result.result)
print("\\n" + json.dumps({"outputs": outputs, "torch": "torch" in sys.modules}))
"""
MODEL = """\
def loss_of(model, batch):
    return model(batch).sum()
"""
LOOP = """\
def train(model, loader, optimizer):
    total = 0
    for batch in loader:
        loss = loss_of(model, batch)
        loss.backward()
        optimizer.step()
        total += loss
    return total
"""
MENDED = LOOP.replace("total += loss", "total += loss.item()")
IMPORT = "def use():\n    import torch\n    from torch import nn\n"  # torch is not there to be run


def session(tmp_path: Path, *cells: tuple[str | None, str]) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", SESSION],
        input=json.dumps([(id, textwrap.dedent(source)) for id, source in cells]),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def texts(output: dict[str, Any]) -> str:
    assert output["error"] == "''", output
    return "\n".join(one["text/plain"] for one in output["shown"])


def test_findings_are_shown_under_the_cell_that_has_them(tmp_path: Path) -> None:
    found = session(tmp_path, ("a", "%load_ext torchmemlint"), ("b", IMPORT), ("c", MODEL), ("d", LOOP), ("e", "x = 1"))
    _, imported, model, loop, other = map(texts, found["outputs"])
    assert imported == model == other == ""
    assert loop.startswith("line 7: TML101 graph-accumulation (warning): `total += loss` keeps")
    assert "= fix (safe): Detach `loss`" in loop
    assert "= learn more: https://torchmemlint.readthedocs.io/rules/TML101/" in loop
    assert not found["torch"]


def test_a_cell_that_is_run_again_is_judged_as_it_is_now(tmp_path: Path) -> None:
    cells = [("a", "%load_ext torchmemlint"), ("b", IMPORT), ("c", MODEL), ("d", LOOP), ("d", LOOP), ("d", MENDED)]
    *_, first, again, mended = map(texts, session(tmp_path, *cells)["outputs"])
    assert first == again
    assert "TML101" in first
    assert mended == ""


def test_what_a_later_cell_makes_of_an_earlier_one_is_said_once(tmp_path: Path) -> None:
    earlier = LOOP.replace("loss_of(model, batch)", "measure(model, batch)")
    later = MODEL.replace("loss_of", "measure")
    cells = [("a", "%load_ext torchmemlint"), ("b", IMPORT), ("c", earlier), ("d", later), ("e", "x = 1")]
    *_, first, second, third = map(texts, session(tmp_path, *cells)["outputs"])
    assert "TML101" in first + second
    assert (first + second).count("TML101 graph-accumulation") == 1
    assert third == ""


def test_it_is_html_in_a_browser(tmp_path: Path) -> None:
    cells = [("a", "%load_ext torchmemlint"), ("b", IMPORT), ("c", MODEL), ("d", LOOP)]
    html = session(tmp_path, *cells)["outputs"][-1]["shown"][0]["text/html"]
    assert '<a href="https://torchmemlint.readthedocs.io/rules/TML101/"' in html
    assert "<code>total += loss</code>" in html
    assert "fix (safe): Detach <code>loss</code>" in html


def test_the_magic_shows_all_and_unloading_ends_it(tmp_path: Path) -> None:
    cells = [
        ("a", "%load_ext torchmemlint"),
        ("b", IMPORT),
        ("c", MODEL),
        ("d", LOOP),
        ("e", "%torchmemlint"),
        ("f", "%torchmemlint on"),
        ("g", "%unload_ext torchmemlint"),
        ("d", LOOP),
    ]
    *_, listed, wrong, _, silent = session(tmp_path, *cells)["outputs"]
    assert listed["result"].startswith("In [4], line 7: TML101")
    assert wrong["result"] == "torchmemlint: %torchmemlint takes nothing, found 'on'"
    assert silent["shown"] == []


def test_settings_of_the_folder_hold(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.torchmemlint]\nignore = ["TML101"]\n')
    cells = [("a", "%load_ext torchmemlint"), ("b", IMPORT), ("c", MODEL), ("d", LOOP)]
    assert texts(session(tmp_path, *cells)["outputs"][-1]) == ""
    (tmp_path / "pyproject.toml").write_text('[tool.torchmemlint]\nignore = ["TML999"]\n')
    assert texts(session(tmp_path, *cells)["outputs"][-1]).startswith("torchmemlint: ")


def test_a_cell_without_an_identity_and_one_that_cannot_be_read(tmp_path: Path) -> None:
    cells = [(None, "%load_ext torchmemlint"), (None, IMPORT), (None, MODEL), (None, "def ("), (None, LOOP)]
    outputs = session(tmp_path, *cells)["outputs"]
    assert outputs[3]["shown"] == []
    assert "TML101" in texts(outputs[4])


def test_a_finding_has_the_words_of_all_formats() -> None:
    finding = replace(accumulation(), doubts=(Doubt.GIVEN,))
    message, shown = message_of(finding), Shown((("line 9", finding),))
    assert {note.label for note in message.notes()} >= {"likely", "why", "fix", "learn more"}
    assert repr(shown).splitlines()[1:] == [f"  = {note.line}" for note in message.notes()]
    html = unescape(re.sub(r"</?code>", "`", shown._repr_html_()))
    assert [note.line for note in message.notes(url=False) if note.line not in html] == []


def test_the_page_shows_what_is_shown(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "jupyter.md").read_text(encoding="utf-8")
    cells = [("a", "%load_ext torchmemlint"), ("b", IMPORT), ("c", MODEL), ("d", LOOP)]
    assert texts(session(tmp_path, *cells)["outputs"][-1]) in page
