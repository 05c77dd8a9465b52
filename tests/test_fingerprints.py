"""What a finding is known by: what changes it, and what does not."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from torchmemlint.findings import Finding, Position, Severity, Span
from torchmemlint.fingerprints import core, subject, with_fingerprints
from torchmemlint.source.decoding import position_of

FOUND = re.compile(r"model\([^()]*\)")


def fingerprints(text: str, path: str = "a.py", code: str = "TML201") -> list[str]:
    """Of each call of `model` in a text."""
    tree = ast.parse(text)
    found = []
    for match in FOUND.finditer(text):
        span = Span(position_of(text, match.start()), position_of(text, match.end()))
        found.append(Finding(code, "x", Severity.ERROR, "said", Path(path), span, _statement(tree, text, span)))
    return [finding.fingerprint for finding in with_fingerprints(found, text)]


def _statement(tree: ast.Module, text: str, span: Span) -> Span:
    best = span
    lines = text.split("\n")
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt):
            body = getattr(node, "body", None)
            after = (body[0].lineno, 0) if body else (node.end_lineno or 0, (node.end_col_offset or 0) + 1)
            if not (node.lineno, node.col_offset) < (span.start.row, span.start.column) < after:
                continue
            last = body[0].lineno - 1 if body else node.end_lineno or 0
            end = len(lines[last - 1]) if body else node.end_col_offset or 0
            best = Span(Position(node.lineno, node.col_offset + 1), Position(last, end + 1))
    return best


def formatted(text: str) -> str:
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "-"]
    done = subprocess.run(command, input=text, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "text",
    [
        "y = f( model( x ) ,'a' , [1,2,] )\n",
        "y = (model(x))\n",
        "assert ( model(x) ) , ( 'no' )\n",
        "for a in ( model(x) ) :\n  pass\n",
        "if ( model(x) ):\n  pass\nelif (   model(x) ) :  # why\n  pass\n",
        "with (f( model( x ) ) as a, g( 'b' ) as b):\n  pass\n",
        "while not (model(x)) :\n  pass\n",
        "class A( model(x) , metaclass = B ) :\n  pass\n",
        "def f( a = model( x ) , b = 'c' ) :\n  return ( a )\n",
        "async def f():\n  return ( await model( x ) )\n",
        "y = model( x ) if ( 'a' ) else 0XAB\n",
        "y = f'{ model(x) }' 'b' \"c\"\n",
        "return_ = lambda z : ( model(x) )\n",
        "del ( a[model(x)], b )\n",
        "x = 1; y = model( x ); z = 2\n",
        f"y = very_long_name_of_a_function(model(x), another_argument='{'text' * 9}', a_third_one=[1, 2, 3, 4])\n",
        "y = 'é' + f( model( x ) )  # é\n",
        "y = model( 'é' , x ) + model( 'é', x )\n",
    ],
)
def test_a_formatter_changes_nothing(text: str) -> None:
    after = formatted(text)
    assert after != text
    assert [mark[:8] for mark in fingerprints(after)] == [mark[:8] for mark in fingerprints(text)]
    assert fingerprints(after) == fingerprints(text) != []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("y = model(x)\n", "# new\nimport a\n\ny = model(x)  # said\n"),
        ("y = model(x)\n", "def f(self):\n    if a:\n        y = model(x)\n"),
        ("y = model(x)\n", "class A:\n    async def f(self):\n        with b:\n            y = model(x)\n"),
        ("y = f(a, model(x))\n", "y = f(\n    a,  # first\n    model(x),  # second\n)\n"),
        ("for a in model(x):\n    b\n", "for a in model(x):\n    c\n    d\n"),
        ("y = 'a'; z = model(x)\n", 'y = "b"; z = model(x)\n'),
        ("y = model(x)\r\n", "y = model(x)\n"),
    ],
)
def test_what_is_around_changes_nothing(before: str, after: str) -> None:
    assert fingerprints(before, "a.py") == fingerprints(after, "b/c.py")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("y = model(x)\n", "z = model(x)\n"),
        ("y = model(x)\n", "y += model(x)\n"),
        ("y = f(model(x), 1)\n", "y = f(model(x), 2)\n"),
        ("y = f(model(x), 1)\n", "y = f(model(x), True)\n"),
        ("y = f(model(x), 'a')\n", "y = f(model(x), b'a')\n"),
        ("y = f(model(x), 'a')\n", "y = f(model(x), a)\n"),
        ("for a in model(x):\n    pass\n", "for b in model(x):\n    pass\n"),
        ("y = f(model(x), *a)\n", "y = f(model(x), **a)\n"),
    ],
)
def test_an_edit_of_the_statement_keeps_the_expression(before: str, after: str) -> None:
    (one,), (other,) = fingerprints(before), fingerprints(after)
    assert subject(one) == subject(other)
    assert core(one) != core(other)


def test_another_expression_or_rule_is_another_finding() -> None:
    (one,), (other,) = fingerprints("y = model(x)\n"), fingerprints("y = model(z)\n")
    assert subject(one) != subject(other)
    assert subject(one) != subject(fingerprints("y = model(x)\n", code="TML101")[0])


def test_equal_ones_are_counted_in_their_file() -> None:
    first, second = fingerprints("y = model(x)\ny = model(x)\n")
    assert core(first) == core(second)
    assert (first[-2:], second[-2:]) == (":1", ":2")
    left, right = fingerprints("y = model(x) + model(z)\n")
    assert core(left) != core(right)


@pytest.mark.parametrize("text", ["x = (", "# torchmemlint: ignore[TML101]", "\x0c  # noqa: TML101"])
def test_what_is_no_statement_goes_by_its_text(text: str) -> None:
    def mark(text: str) -> str:
        span = Span(Position(1, 1), Position(1, len(text) + 1))
        finding = Finding("TML001", "x", Severity.ERROR, "said", Path("a.py"), span, span)
        return with_fingerprints([finding], text)[0].fingerprint

    assert mark(text) == mark(text.replace(" ", "")) != mark(text + "y")


def test_what_cannot_be_parsed_goes_by_its_row() -> None:
    def mark(text: str, row: int) -> str:
        span = Span(Position(row, 3), Position(row, 3))
        finding = Finding("TML000", "x", Severity.ERROR, "said", Path("a.py"), span, span)
        return with_fingerprints([finding], text)[0].fingerprint

    assert mark("print 'a'\n", 1) == mark("\n\nprint 'a'\n", 3) != mark("print 'b'\n", 1)
    assert mark("", 1)  # past the end


def test_it_does_not_depend_on_the_release_of_python() -> None:
    # Written down once; a baseline is read by other releases than wrote it.
    text = "y = f(model(x), 'é', b'\\x00', 1_000, 1.5, 2j, None, ..., f'a{b!r:>{c}}{{', lambda *a, b=1: a[1:2])\n"
    assert fingerprints(text) == ["5526ff5b5b560e83:1"]


def test_deep_nesting_is_no_problem() -> None:
    assert fingerprints("y = model(x)" + " + 1" * 900 + "\n")
    assert fingerprints("y = " + "(" * 90 + "model(x)" + ")" * 90 + "\n") == fingerprints("y = model(x)\n")
