"""What is said after edits, with all that is kept from check to check, is what a fresh look says."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchmemlint.engine.checking import Check
from torchmemlint.findings import Finding
from torchmemlint.flow.project import Project
from torchmemlint.rules import registry
from torchmemlint.server.files import EditedFiles
from torchmemlint.source.decoding import UnreadableFile

FIXTURES = sorted((Path(__file__).parents[2] / "fixtures").glob("TML[1-9]*/[bg]*.py"))
CODES = frozenset(rule.code for rule in registry.all_rules() if rule.on and not rule.code.startswith("TML0"))
PATH = Path("/nowhere/train.py")

SCRIPT = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)
        self.last = None

    def forward(self, x):
        x = self.layer(x)
        return x


def losses_of(model, loader, criterion):
    for x, y in loader:
        yield criterion(model(x), y)


def train(model: Net, loader, criterion, optimizer):
    total = 0.0
    for loss in losses_of(model, loader, criterion):
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total


def main():
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    print(train(model, [], nn.MSELoss(), optimizer))


if __name__ == "__main__":
    main()
"""


class Editor:
    """One open file, whose text is given again and again."""

    def __init__(self) -> None:
        self.files = EditedFiles(PATH.parent)

    def found(self, text: str) -> list[Finding] | None:
        """The findings; None where the text cannot be read."""
        self.files.begin({PATH: text})
        found = None
        try:
            check = Check(text, PATH, Project(PATH.parent, files=self.files))
            found = check.findings(CODES)
            check.release()
        except UnreadableFile:
            pass
        finally:
            self.files.end(whole=found is not None)
        return found


def fresh(text: str) -> list[Finding] | None:
    return Editor().found(text)


def typed(line: str, before: str, after: str, script: str = SCRIPT) -> list[Finding]:
    """What is said in the end of a line typed between two texts, each character checked against a fresh look."""
    assert script.count(before + after) == 1
    editor = Editor()
    editor.found(script)
    for length in range(len(line) + 1):
        text = script.replace(before + after, f"{before}{line[:length]}\n{after}")
        answer = editor.found(text)
        assert answer == fresh(text), text
    assert answer is not None
    return answer


def codes(findings: list[Finding] | None) -> list[tuple[str, int]]:
    assert findings is not None
    return [(finding.code, finding.span.start.row) for finding in findings]


def test_a_leak_typed_into_a_loop_is_seen() -> None:
    assert typed("    rows = []", "    total = 0.0\n", "    for loss in") == []
    assert ("TML101", 28) in codes(typed("        total += loss", "        total += loss.item()\n", "    return total"))


def test_a_leak_mended_is_gone() -> None:
    editor = Editor()
    assert codes(editor.found(SCRIPT.replace("total += loss.item()", "total += loss"))) == [("TML101", 27)]
    for text in ("total += loss.i", "total += loss.item", "total += loss.", "total += loss.item("):
        text = SCRIPT.replace("total += loss.item()", text)
        assert editor.found(text) == fresh(text)
    assert editor.found(SCRIPT) == []


def test_an_edit_moves_what_was_found_below_it() -> None:
    script = SCRIPT.replace("total += loss.item()", "total += loss")
    last = typed("        # of its inputs", "        x = self.layer(x)\n", "        return x\n", script)
    assert codes(last) == [("TML101", 28)]
    assert codes(typed("# what we train", "from torch import nn\n", "\n\nclass", script)) == [("TML101", 28)]


def test_a_subclass_is_that_of_the_text_as_it_stands() -> None:
    script = (FIXTURES[0].parents[1] / "TML401-loader-without-workers" / "bad_indexing.py").read_text(encoding="utf-8")
    editor = Editor()
    editor.found(script)
    edited = editor.found(f"# a comment\n{script}")  # what a method of a base class gives, a subclass says
    assert edited == fresh(f"# a comment\n{script}")
    assert len(codes(edited)) == 4


@cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.sampled_from(FIXTURES), st.data())
def test_edits_anywhere(path: Path, data: st.DataObject) -> None:
    """Rows that come, go and change places."""
    editor = Editor()
    rows = text_of(path).splitlines(keepends=True)
    editor.found("".join(rows))
    for _ in range(3):
        row = data.draw(st.integers(0, len(rows) - 1))
        blanks = rows[row][: len(rows[row]) - len(rows[row].lstrip())].strip("\n")
        match data.draw(st.sampled_from(["comment", "blank", "pass", "end", "gone", "twice"])):
            case "comment":
                rows.insert(row, f"{blanks}# a comment\n")
            case "blank":
                rows.insert(row, "\n")
            case "pass":
                rows.insert(row, f"{blanks}pass\n")
            case "end":
                rows[row] = rows[row].rstrip("\n") + "  # more\n"
            case "gone":
                del rows[row]
                rows = rows or ["\n"]
            case "twice":
                rows.insert(row, rows[row])
        text = "".join(rows)
        assert editor.found(text) == fresh(text)
