"""The session without a client."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

pytest.importorskip("pygls")

from tests.server.samples import LEAK, LEAK_ROW
from torchmemlint.engine.checking import Check
from torchmemlint.findings import Finding, Position, Severity, Span
from torchmemlint.fixes.edits import apply_edits
from torchmemlint.server.comments import code_at, ignore_file, ignore_line, unfinished
from torchmemlint.server.documents import Document
from torchmemlint.server.session import Session, moved
from torchmemlint.server.settings import ClientSettings, read_settings

LOSS = """\
import torch
from torch import nn


def eta(net: nn.Module, loader):
    net.eval()
    total = 0
    for x in loader:
        total = total + net(x).mean()
    return total
"""
TEST_OF_A_LOSS = """\
import torch
from losses import eta


def test_of_eta():
    net, x = torch.nn.Linear(2, 2), torch.ones(1, 2)
    {line}
"""


@pytest.fixture
def session(tmp_path):
    found = Session()
    found.folders.add(tmp_path)
    yield found
    found.worker.end()


def run(scenario):
    return asyncio.run(asyncio.wait_for(scenario, 30))


def put(session: Session, path: Path, text: str) -> str:
    session.documents.put(Document(path.as_uri(), text, 1))
    return path.as_uri()


def test_a_fault_of_the_linter_keeps_what_was_found(session, tmp_path, monkeypatch) -> None:
    async def scenario() -> None:
        uri = put(session, tmp_path / "a.py", LEAK)
        assert [one.code for one in (await session.check(uri)).all] == ["TML101"]

        def fail(*_, **__):
            raise RuntimeError("a bug")

        monkeypatch.setattr(Check, "findings", fail)
        put(session, tmp_path / "a.py", "\n" + LEAK)
        checked = await session.check(uri)
        assert checked.failed
        assert [one.span.start.row for one in checked.kept] == [LEAK_ROW + 2]
        monkeypatch.undo()
        put(session, tmp_path / "a.py", "\n\n" + LEAK)
        assert not (await session.check(uri)).failed

    run(scenario())


@pytest.mark.parametrize(("line", "made"), [("eta(net, [x]).backward()", False), ("assert eta(net, [x]) > 0", True)])
def test_a_gradient_that_a_test_takes_stays(session, tmp_path, line, made) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.torchmemlint]\nconfidence = "possible"\n')
    (tmp_path / "test_losses.py").write_text(TEST_OF_A_LOSS.format(line=line))

    async def scenario() -> None:
        uri = put(session, tmp_path / "losses.py", LOSS)
        fixed = await session.fix(uri, lambda finding: finding.code == "TML201", unsafe=True)
        assert bool(fixed[1].applied) is made
        assert [why for _, why in fixed[1].rolled_back] == (
            [] if made else ["test_of_eta of test_losses.py takes the gradient of what `eta` returns"]
        )

    run(scenario())


def test_questions_about_the_same_text_share_one_check(session, tmp_path, monkeypatch) -> None:
    checks = []
    real = Check.findings
    monkeypatch.setattr(Check, "findings", lambda *words, **more: checks.append(1) or real(*words, **more))

    async def scenario() -> None:
        uri = put(session, tmp_path / "a.py", LEAK)
        answers = await asyncio.gather(*(session.check(uri) for _ in range(5)))
        assert len({answer.number for answer in answers}) == 1
        await session.check(uri)
        assert len(checks) == 1

    run(scenario())


def test_who_asks_about_an_older_text_is_told_of_the_newer(session, tmp_path) -> None:
    async def scenario() -> None:
        uri = put(session, tmp_path / "a.py", LEAK)
        older = asyncio.ensure_future(session.check(uri))
        await asyncio.sleep(0)
        put(session, tmp_path / "a.py", LEAK.replace("+= loss", "+= loss.item()"))
        newer = await session.check(uri)
        assert newer.all == ()
        assert (await older).number == newer.number

    run(scenario())


def test_a_closed_document_is_not_answered_for(session, tmp_path) -> None:
    async def scenario() -> None:
        uri = put(session, tmp_path / "a.py", LEAK)
        asked = asyncio.ensure_future(session.check(uri))
        await asyncio.sleep(0)
        session.documents.drop(uri)
        session.closed(uri)
        assert await asked is None

    run(scenario())


def finding(row: int, statement: tuple[int, int] | None = None) -> Finding:
    span = Span(Position(row, 1), Position(row, 4))
    first, last = statement or (row, row)
    around = Span(Position(first, 1), Position(last, 40))
    return Finding("TML101", "n", Severity.WARNING, "m", Path("a.py"), span, around)


def test_findings_move_with_the_text_around_an_edit() -> None:
    before = "a\nb\nc\nd\n"
    rows = [finding(row) for row in (1, 2, 4)]
    assert [one.span.start.row for one in moved(rows, before, "a\nb\nnew(\nc\nd\n")] == [1, 2, 5]
    assert [one.span.start.row for one in moved(rows, before, "a\nB\nc\nd\n")] == [1, 4]
    assert [one.span.start.row for one in moved(rows, before, "")] == []
    assert [one.span.start.row for one in moved(rows, before, before)] == [1, 2, 4]


@pytest.mark.parametrize(
    ("text", "statement", "after"),
    [
        ("loss\n", (1, 1), "loss  # torchmemlint: ignore[TML101]\n"),
        ("loss  # why\n", (1, 1), "loss  # why  # torchmemlint: ignore[TML101]\n"),
        ("f(a,\n  b)\n", (1, 2), "f(a,  # torchmemlint: ignore[TML101]\n  b)\n"),
        ("x = \\\n  b\n", (1, 2), "x = \\\n  b  # torchmemlint: ignore[TML101]\n"),
        ('f("""\n""")\n', (1, 2), 'f("""\n""")  # torchmemlint: ignore[TML101]\n'),
        ("loss  # torchmemlint: ignore[TML201]\n", (1, 1), "loss  # torchmemlint: ignore[TML201, TML101]\n"),
        ("loss", (1, 1), "loss  # torchmemlint: ignore[TML101]"),
    ],
)
def test_ignore_on_this_line(text: str, statement: tuple[int, int], after: str) -> None:
    edit = ignore_line(finding(1, statement), text)
    assert edit is not None
    assert apply_edits(text, [edit]) == after


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("x\n", "# torchmemlint: ignore-file[TML101]\nx\n"),
        ("#!/usr/bin/python\n# coding: latin-1\nx\n",
         "#!/usr/bin/python\n# coding: latin-1\n# torchmemlint: ignore-file[TML101]\nx\n"),
        ("# torchmemlint: ignore-file[TML2]\nx\n", "# torchmemlint: ignore-file[TML2, TML101]\nx\n"),
    ],
)  # fmt: skip
def test_ignore_in_this_file(text: str, after: str) -> None:
    assert apply_edits(text, [ignore_file("TML101", text)]) == after


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("x  # torchmemlint: ignore[TML1", "TML1"),
        ("x  # torchmemlint: ignore[", ""),
        ("x  # torchmemlint: ignore-file[TML101, ", ""),
        ("x  # noqa: TML1", "TML1"),
        ("x  # torchmemlint: ignore[TML101]", None),
        ("x[TML1", None),
        ("x  # ignore[TML1", None),
    ],
)
def test_where_a_code_is_being_written(line: str, word: str | None) -> None:
    found = unfinished(line)
    assert (found.word if found is not None else None) == word


def test_the_code_under_the_cursor() -> None:
    line = "x  # torchmemlint: ignore[TML101, TML2]"
    assert code_at(line, 28) == ("TML101", 26, 32)
    assert code_at(line, 2) is None
    assert code_at("TML101  # x", 2) is None


def test_settings_that_are_wrong_are_named_and_the_rest_counts() -> None:
    given = {"select": ["TML1"], "run": "sometimes", "fixAll": False, "ignroe": [], "enable": "yes", "path": ["x"]}
    settings, problems = read_settings(given, ClientSettings(), None)
    assert settings == ClientSettings(select=("TML1",), fix_all=False)
    assert len(problems) == 3
    assert any("Did you mean `ignore`?" in problem for problem in problems)
    assert read_settings({"select": None}, settings, None)[0].select is None
    assert read_settings({"ignore": ["TML999"]}, settings, None)[1]
    assert read_settings("x", settings, None) == (settings, ["the settings are not an object"])


def test_a_file_that_begins_to_run_another_has_that_checked_again(session, tmp_path) -> None:
    step = "import torch\n\n\ndef step(net, x, history):\n"
    step += "    loss = net(x).sum()\n    loss.backward()\n    history.append(loss)\n"
    loop = "net, history = torch.nn.Linear(3, 3), []\nfor _ in range(9):\n    step(net, torch.rand(2, 3), history)\n"

    for name, text in (("steps.py", step), ("main.py", "import torch\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")

    async def scenario() -> None:
        steps = put(session, tmp_path / "steps.py", step)
        put(session, tmp_path / "main.py", "import torch\n")
        assert (await session.check(steps)).all == ()
        put(session, tmp_path / "main.py", "import torch\nfrom steps import step\n\n" + loop)
        assert steps in session.touched(tmp_path / "main.py")
        assert [one.code for one in (await session.check(steps)).all] == ["TML102"]

    run(scenario())
