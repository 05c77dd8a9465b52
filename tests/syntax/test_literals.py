"""String literals taken apart by their text. That the trees are right: see the f-strings among the snippets."""

from __future__ import annotations

import libcst as cst
import pytest

from torchmemlint.syntax.conversion import convert
from torchmemlint.syntax.literals import Field, Formatted, literals
from torchmemlint.syntax.standard import parse


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("'a'", ["'a'"]),
        ('"" \'\'  # "c"\n"""d"e"""', ['""', "''", '"""d"e"""']),
        (r'"\"" \\' + "\n'b'", None),  # two backslashes continue no row
        ("\"a\" \\\n  b'c'", ['"a"', "b'c'"]),
        ('f"a{b.c}"', [Formatted('f"', ["a", Field("b.c", None, None)], '"')]),
        ("rF'''{ a!r:>{{4}}}'''", None),
        ("Rf'{ a!r:>4}\\d'", [Formatted("Rf'", [Field(" a", "r", ">4"), "\\d"], "'")]),
        ('f"{{{a}}}{b:}"', [Formatted('f"', ["{{", Field("a", None, None), "}}", Field("b", None, "")], '"')]),
        ('"{a}" f"\\{b}"', None),  # a backslash and a field, or is it an escape?
        ('f"\\N{DASH}"', None),
        ('f"{a=}"', None),
        ('f"{a:{b}}"', None),
        ("f'{a[\"b\"]}'", None),
        ("(a)", None),
        ("'a", None),
    ],
)
def test_literals(text: str, expected: list[str | Formatted] | None) -> None:
    assert literals(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "'a'",
        '"a" "b"',
        'f"{a.b}: {c[0]:.2f} {len(d)}, {e if f else g!r}" f"{{h}}"',
        "raise ValueError(\n    f'the shape {x.shape} is not '\n    'one of three'\n)",
    ],
)
def test_what_is_written_every_day_needs_no_second_parser(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(cst, "parse_expression")
    assert convert(parse(text).body, [row + "\n" for row in text.split("\n")]).body
