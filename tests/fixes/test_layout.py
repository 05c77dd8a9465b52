"""Statements that fixes touch are laid out as ruff lays them out: it is asked what it makes of each."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest

from torchmemlint.config.formatting import formatting
from torchmemlint.fixes.layout import Layout
from torchmemlint.fixes.leaves import statements
from torchmemlint.fixes.tidying import written

NAMES = ("x", "loss", "self.target_network", "outputs", "configuration.batch_size", "observations")
CALLEES = ("f", "self.critic", "torch.nn.functional.cross_entropy", "DataLoader", "model.encoder.forward")


class Grammar:
    """Expressions and statements by chance."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def expression(self, depth: int) -> str:
        pick = self.chance.choice
        if depth == 0:
            return pick((*NAMES, "1", '"name"', "True"))
        kind = self.chance.randrange(12)
        inner = [self.expression(depth - 1) for _ in range(self.chance.randrange(1, 4))]
        match kind:
            case 0 | 1 | 2:
                named = [f"{name}={value}" for name, value in zip(("pin_memory", "k"), inner[1:], strict=False)]
                return f"{pick(CALLEES)}({', '.join([inner[0], *named])})"
            case 3 | 4:
                methods = "".join(f".{pick(('detach', 'to', 'mean', 'cpu'))}({one})" for one in inner)
                return f"{pick(CALLEES)}({inner[0]}){methods}"
            case 5:
                return f"{inner[0]}.detach()" if inner[0][-1] in ")]" else f"{pick(NAMES)}.detach()"
            case 6:
                return f" {pick(('+', '*', '-', '/'))} ".join(map(self.operand, inner))
            case 7:
                return f"[{', '.join(inner)}]"
            case 8:
                return f"{{{', '.join(f'{pick(NAMES)}: {one}' for one in inner)}}}"
            case 9:
                return f"{pick(NAMES)}[{', '.join(inner)}]"
            case 10:
                return f"[{inner[0]} for item in {pick(NAMES)}]"
            case _:
                return f"({' and '.join(map(self.operand, inner))}, {inner[-1]})"

    def operand(self, text: str) -> str:
        """As it stands beside an operator."""
        return f"({text})" if " " in text.replace(", ", ",") and text[0] not in "[{(" else text

    def statement(self) -> str:
        value = self.expression(self.chance.randrange(1, 4))
        target = self.chance.choice((*NAMES, "values[index]", "first, second"))
        kinds = (f"{target} = {value}", f"loss += {value}", value, f"return {value}", f"{target} = {value}  # a note")
        return self.chance.choice(kinds)


def formatted(text: str, limit: int) -> str:
    command = ["format", "--isolated", f"--line-length={limit}", "--stdin-filename=program.py", "-"]
    return subprocess.run(
        [str(Path(sys.executable).parent / "ruff"), *command], input=text, capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.parametrize("limit", [60, 88])
def test_statements_are_laid_out_as_by_ruff(limit: int) -> None:
    grammar = Grammar(limit)
    program = "def f():\n" + "".join(f"    {grammar.statement()}\n" for _ in range(1_000))
    text = formatted(program, limit)
    found = statements(text)
    layouts = [Layout(limit, black=black) for black in (False, True)]
    broken = [one for one in found if one.is_plain and "\n" in one.text(text)]
    assert len(broken) > 200
    wrong = [
        one.text(text)
        for one in found
        if one.is_plain and all(written(layout.lay_out(one)) != one.text(text) for layout in layouts)
    ]
    assert len(wrong) <= len(found) / 100, "\n".join(wrong)


@pytest.mark.parametrize(
    ("files", "length"),
    [
        ({}, 88),
        ({"pyproject.toml": "[tool.black]\nline-length = 100\n"}, 100),
        ({"pyproject.toml": "[tool.black]\n", "setup.cfg": "[flake8]\nmax-line-length = 120\n"}, 88),
        ({"ruff.toml": "line-length = 79\n", "pyproject.toml": "[tool.ruff]\nline-length = 100\n"}, 79),
        ({"../pyproject.toml": "[tool.ruff]\nline-length = 99\n", "setup.cfg": "[flake8]\nmax-line-length = 120"}, 99),
        ({"setup.cfg": "[flake8]\nmax-line-length = 120\n"}, 120),
        ({"setup.cfg": "[isort]\nline_length = 100\n"}, 100),
        ({".editorconfig": "[*.py]\nmax_line_length = 110\n"}, 110),
        ({".pre-commit-config.yaml": "- id: black\n  args: [--line-length=119]\n"}, 119),
        ({"pyproject.toml": "[tool.black\n"}, 88),
        ({"pyproject.toml": "[tool.black]\nline-length = 'x'\n"}, 88),
    ],
)
def test_the_length_of_lines_is_that_of_the_project(tmp_path: Path, files: dict[str, str], length: int) -> None:
    (tmp_path / ".git").mkdir()
    folder = tmp_path / "package"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    assert formatting(folder).length == length
