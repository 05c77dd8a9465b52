"""What stands inside a node, read off its fields, is what libcst itself visits, blanks and punctuation aside."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import libcst as cst
import pytest

from torchmemlint.syntax.walking import inside

_PUNCTUATION = (
    cst.Asynchronous,
    cst.AssignEqual,
    cst.BaseParenthesizableWhitespace,
    cst.Colon,
    cst.Comma,
    cst.Comment,
    cst.Dot,
    cst.EmptyLine,
    cst.LeftCurlyBrace,
    cst.LeftParen,
    cst.LeftSquareBracket,
    cst.Newline,
    cst.ParamSlash,
    cst.RightCurlyBrace,
    cst.RightParen,
    cst.RightSquareBracket,
    cst.Semicolon,
    cst.TrailingWhitespace,
)
SYNTAX = '''
from .. import a as b, c
async def f(x: int, /, y=1, *rest, key: str = "k", **others) -> None:
    """text"""
    async with open(x) as file, lock: pass
    await (yield)
@decorated(1)
class A(Base, metaclass=Meta):
    x: int = 3; y = -x
    def g(self): return [i for i in range(3) if i], {k: v for k, v in {}.items()}, {*a}, {**b}
try:
    raise E from e
except (A, B) as e:
    del a[1:2:3], b[..., *c]
else:
    assert a, "b"
finally:
    global h
match (command):
    case [Point(x=0, y=0), *rest] | {"k": 1, **others} if x > 1: ...
    case str() as name: z = lambda u, *v: u if v else not u
    case None | -1 | a.b: ...
while (n := n - 1) or b and c is not d:
    print(f"{n!r:>{width}} {n}" "more", sep="", *e); continue
else:
    break
with (a, b as c): a += 1; b @= 2
'''

TEXTS = [SYNTAX, *(path.read_text() for path in sorted(Path(__file__).parents[2].glob("tools/*.py")))]


def visited(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    yield node
    for child in node.children:
        if not isinstance(child, _PUNCTUATION):
            yield from visited(child)


@pytest.mark.parametrize(
    "text", [SYNTAX, *(p.read_text() for p in sorted(Path(__file__).parents[2].glob("tools/*.py")))]
)
def test_the_same_nodes_in_the_same_order(text: str) -> None:
    module = cst.parse_module(text)
    dots = {id(dot) for node in visited(module) if isinstance(node, cst.ImportFrom) for dot in node.relative}
    expected = [node for node in visited(module) if id(node) not in dots]
    assert [(type(node), id(node)) for node in inside(module)] == [(type(node), id(node)) for node in expected]
