from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

from tests.torch_files import torch_files
from torchmemlint.config.limits import MAX_NESTING
from torchmemlint.engine.checking import check_text
from torchmemlint.source.decoding import UnreadableFile
from torchmemlint.syntax import cst
from torchmemlint.syntax.source_module import SourceModule

HEADERS = {
    "    with torch.no_grad:\n        x = 1\n": (2, 2),
    "    with torch.no_grad:  # why\n\n        # more\n        x = 1\n": (2, 2),
    "    with (\n        torch.no_grad,  # one\n        # two\n    ):\n        x = 1\n": (2, 5),
    "    with torch.no_grad: x = 1\n": (2, 2),
    "    if x:\n        y = 1\n        with torch.no_grad:\n            x = 1\n": (4, 4),
}


@pytest.mark.parametrize("body", HEADERS, ids=range(len(HEADERS)))
def test_the_statement_of_a_finding_in_a_header_is_the_header(body: str) -> None:
    (finding,) = check_text("def f(x):\n" + body + "import torch\n", Path("a.py"), frozenset(("TML202",)))
    first, last = HEADERS[body]
    assert finding.statement.start.row == first
    assert finding.statement.end.row == last


@pytest.mark.parametrize("text", ["x = " + "-" * 400 + "y", "x = " + "(" * 400 + "1" + ")" * 400, "x = " + "(" * 9_000])
def test_what_is_nested_too_deeply_is_refused(text: str) -> None:
    assert MAX_NESTING < 400
    for whole in (
        f"import torch\n{text}\n",
        f"import torch\n\n\ndef train(model):\n    model(torch.ones(2))\n    {text}\n",
    ):
        with pytest.raises(UnreadableFile):
            check_text(whole, Path("a.py"), frozenset(("TML101",)))


def test_a_long_chain_of_statements_is_not_deep() -> None:
    text = "import torch\n\n\ndef train(model, x):\n" + "    x = model(x)\n" * 500
    assert check_text(text, Path("a.py"), frozenset(("TML101",))) == []


TOTAL = """
def {name}(model, loader):
    {odd}
    total = 0
    for x in loader:
        loss = model(x)
        loss.backward()
        total += loss
    return total
"""


def test_a_piece_that_libcst_cannot_read_is_run_all_the_same() -> None:
    odd = TOTAL.format(name="odd", odd="(seen): int = 1")  # valid, but not for libcst 1.9
    text = "import torch\n" + odd + TOTAL.format(name="plain", odd="seen: int = 1")
    found = check_text(text, Path("a.py"), frozenset(("TML101",)))
    assert [finding.span.start.row for finding in found] == [9, 18]


def test_of_a_half_written_file_only_the_definition_around_the_fault_is_tried_again(monkeypatch) -> None:
    tried: list[str] = []
    real = cst.parse_module
    monkeypatch.setattr(cst, "parse_module", lambda text: tried.append(text) or real(text))
    text = "import torch\n\n\ndef f():\n    pass\n\n\n@g\ndef h(x):\n    return (x\n\n\nclass A:\n    pass\n"
    with pytest.raises(UnreadableFile):
        SourceModule(text, Path("a.py"))
    assert tried == ["@g\ndef h(x):\n    return (x\n\n\n"]


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="reads the syntax itself")
@pytest.mark.parametrize("newer", ["def first[T](x: list[T]) -> T:\n    return x[0]", "type X = int", 'y = t"{x}"'])
def test_syntax_newer_than_the_running_python_is_said(newer: str) -> None:
    """Else nothing would be found in the file, and all would be well."""
    with pytest.raises(UnreadableFile, match="newer than Python 3"):
        SourceModule(f"import torch\n\n\n{newer}\n", Path("a.py"))


_FILES = [*Path(ast.__file__).parent.glob("*.py"), *torch_files("*.py", "nn/**/*.py")]
