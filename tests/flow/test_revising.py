"""What is said after an edit without looking at the whole file is what a whole look says."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchmemlint.engine.checking import Check
from torchmemlint.findings import Finding
from torchmemlint.flow.revising import TooMuch
from torchmemlint.rules import registry
from torchmemlint.source.decoding import UnreadableFile
from torchmemlint.syntax.source_module import UprootedNode

FIXTURES = sorted((Path(__file__).parents[2] / "fixtures").glob("TML[1-9]*/[bg]*.py"))
CODES = frozenset(rule.code for rule in registry.all_rules() if rule.on and not rule.code.startswith("TML0"))
PATH = Path("train.py")

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

    def describe(self):
        return "a net"


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


def found(check: Check) -> list[Finding]:
    return check.findings(CODES)


def fresh(text: str) -> list[Finding]:
    return found(Check(text, PATH))


def quiet() -> None:
    """No wish to stop."""


def typed(before: str, after: str, line: str, script: str = SCRIPT) -> list[list[Finding]]:
    """What is said after each character of a line typed between two texts, checked against a whole look."""
    assert script.count(before + after) == 1
    check = Check(script, PATH)
    found(check)
    answers = []
    for length in range(len(line) + 1):
        text = script.replace(before + after, f"{before}{line[:length]}\n{after}")
        try:
            check.revise(text, quiet)
        except UnreadableFile as problem:
            said = problem.message, problem.position
            with pytest.raises(UnreadableFile) as whole:
                fresh(text)
            same = (whole.value.message, whole.value.position) == said
            assert same
            continue
        answers.append(found(check))
        assert answers[-1] == fresh(text)
    return answers


def codes(findings: list[Finding]) -> list[tuple[str, int]]:
    return [(finding.code, finding.span.start.row) for finding in findings]


def test_a_leak_typed_into_a_loop_is_seen() -> None:
    answers = typed("    total = 0.0\n", "    for loss in", "    all_losses = []")
    assert answers[-1] == []
    answers = typed("        total += loss.item()\n", "    return total", "        total += loss")
    assert ("TML101", 31) in codes(answers[-1])


def test_a_leak_mended_is_gone() -> None:
    script = SCRIPT.replace("total += loss.item()", "total += loss")
    check = Check(script, PATH)
    assert codes(found(check)) == [("TML101", 30)]
    for text in ("total += loss.i", "total += loss.ite", "total += loss.item"):
        check.revise(SCRIPT.replace("total += loss.item()", text), quiet)
    for text in ("total += loss.", "total += loss.item("):
        with pytest.raises(UnreadableFile):
            check.revise(SCRIPT.replace("total += loss.item()", text), quiet)
    check.revise(SCRIPT, quiet)
    assert found(check) == []


def test_methods_are_followed() -> None:
    answers = typed("        x = self.layer(x)\n", "        return x\n", "        self.last = x")
    assert answers[-1] == fresh(SCRIPT.replace("        return x\n", "        self.last = x\n        return x\n"))


def test_an_edit_moves_what_was_found_below_it() -> None:
    script = SCRIPT.replace("total += loss.item()", "total += loss")
    answers = typed("        x = self.layer(x)\n", "        return x\n", "        # of its inputs", script)
    assert codes(answers[-1]) == [("TML101", 31)]
    answers = typed("from torch import nn\n", "\n\nclass", "# what we train", script)
    assert codes(answers[-1]) == [("TML101", 31)]


def test_imports_that_nothing_uses_concern_nobody() -> None:
    check = Check(SCRIPT, PATH)
    for line in ("i", "impor", "import math", "import mathematics as m", "from math import pi"):
        text = SCRIPT.replace("import torch\n", f"import torch\n{line}\n")
        check.revise(text, quiet)
        assert found(check) == fresh(text)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("import torch\n", "import torch\nimport losses_of\n"),  # a name that is in use
        ("import torch\n", "import torch\nfrom other import *\n"),
        ("def train(model: Net,", "def train(model,"),
        ("def main():", "@torch.no_grad()\ndef main():"),
        ("    def describe(self):", "    def describe(self, x):"),
        ("class Net(nn.Module):", "class Net:"),
        ("    main()\n", "    main()\n    main()\n"),
        ("    main()\n", "    main()\n\nmai\n"),
        ("def main():\n", "def other():\n    pass\n\n\ndef main():\n"),
        (
            "        x = self.layer(x)\n",
            "        x = self.layer(x)\n        y = x\n\n    def more(self):\n        pass\n",
        ),
    ],
)
def test_what_concerns_others_is_left_to_a_whole_look(old: str, new: str) -> None:
    assert SCRIPT.count(old) == 1
    check = Check(SCRIPT, PATH)
    found(check)
    with pytest.raises(TooMuch):
        check.revise(SCRIPT.replace(old, new), quiet)


def test_a_function_that_becomes_worth_a_look_is_left_to_a_whole_one() -> None:
    script = dedent(
        """\
        import torch
        from torch import nn


        class Net(nn.Module):
            def forward(self, x):
                y = x
                return y
        """
    )
    check = Check(script, PATH)
    check.revise(script.replace("y = x\n", "y = x\n        z = x\n"), quiet)
    with pytest.raises(TooMuch):
        check.revise(script.replace("y = x\n", "y = x\n        y.mean().backward()\n"), quiet)


@cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(FIXTURES), st.data())
def test_edits_that_change_nothing_change_nothing(path: Path, data: st.DataObject) -> None:
    """A comment, a blank line or a `pass` anywhere: findings, evidence and fixes are those of a whole look."""
    rows = text_of(path).splitlines(keepends=True)
    try:
        check = Check("".join(rows), path)
    except UnreadableFile:
        return
    row = data.draw(st.integers(0, len(rows) - 1))
    blanks = rows[row][: len(rows[row]) - len(rows[row].lstrip())].strip("\n")
    edit = data.draw(st.sampled_from(["comment", "blank", "pass", "end"]))
    match edit:
        case "comment":
            rows.insert(row, f"{blanks}# a comment\n")
        case "blank":
            rows.insert(row, "\n")
        case "pass":
            rows.insert(row, f"{blanks}pass\n")
        case "end":
            rows[row] = rows[row].rstrip("\n") + "  # more\n"
    text = "".join(rows)
    try:
        check.revise(text, quiet)
        answer = found(check)
    except (TooMuch, UprootedNode):
        return  # said to be for a whole look
    except UnreadableFile:
        with pytest.raises(UnreadableFile):
            Check(text, path)
        return
    assert answer == found(Check(text, path))
