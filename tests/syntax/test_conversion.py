"""The tree made of the standard parser's is the one that libcst parses, and reads the same to Python."""

from __future__ import annotations

import ast
import json
import re
import sysconfig
from pathlib import Path

import hypothesmith
import libcst as cst
import pytest
from hypothesis import example, given, settings

from tests.syntax.test_walking import SYNTAX
from torchmemlint.syntax.conversion import convert
from torchmemlint.syntax.source_module import SourceModule
from torchmemlint.syntax.standard import parse
from torchmemlint.syntax.walking import children, inside, side_by_side

ROOT = Path(__file__).parents[2]
LIBRARY = Path(sysconfig.get_path("stdlib"))
FILES = sorted([*ROOT.glob("torchmemlint/flow/*.py"), *ROOT.glob("tools/*.py"), *ROOT.glob("fixtures/TML[23]*/*.py")])
FILES += sorted(
    path for name in ("asyncio", "collections", "json", "unittest") for path in LIBRARY.glob(f"{name}/*.py")
)

_, *PARTS = re.split(r"^=== (.*)\n", (Path(__file__).parent / "snippets.txt").read_text(encoding="utf-8"), flags=re.M)
SNIPPETS = dict(zip(PARTS[::2], PARTS[1::2], strict=True))


def made(text: str) -> cst.Module:
    return convert(parse(text).body, [row + "\n" for row in SourceModule.rows_of(text)])


def value(node: cst.CSTNode) -> tuple[object, ...]:
    """What a node says besides what stands in it."""
    return tuple(
        getattr(node, name) for name in ("value", "star", "start", "end") if isinstance(getattr(node, name, None), str)
    )


def compare(text: str) -> None:
    own, parsed = made(text), cst.parse_module(text)
    pairs = side_by_side(own, parsed)
    if pairs is None:  # for a message that shows where
        stack = [(own, parsed)]
        while stack:
            one, other = stack.pop()
            assert (type(one), list(map(type, children(one)))) == (type(other), list(map(type, children(other))))
            stack += zip(children(one), children(other), strict=True)
    assert pairs is not None
    for one, other in pairs:
        if not isinstance(
            one, cst.Name
        ):  # Python's parser reads names in their normal form, libcst as they are written
            assert value(one) == value(other)
    assert ast.dump(parse(own.code)) == ast.dump(parse(text))


@pytest.mark.parametrize("text", [SYNTAX, *SNIPPETS.values()], ids=["syntax", *SNIPPETS])
def test_syntax(text: str) -> None:
    try:
        parse(text)
    except SyntaxError:
        pytest.skip("newer than this Python")
    compare(text)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_files(path: Path) -> None:
    compare(path.read_text(encoding="utf-8"))


@settings(max_examples=100, deadline=None)
@given(hypothesmith.from_grammar())
@example('A;""""""""\n')  # two literals in a row, the first of them empty
def test_any_python(text: str) -> None:
    try:
        parsed = cst.parse_module(text)
    except cst.ParserSyntaxError:
        return
    assert side_by_side(made(text), parsed) is not None


def test_nodes_that_are_told_apart_by_identity_are_no_nodes_of_two_places() -> None:
    module = made(Path(json.__file__).read_text(encoding="utf-8"))
    places = [node for node in inside(module) if isinstance(node, cst.BaseExpression | cst.BaseStatement | cst.Arg)]
    assert len(set(map(id, places))) == len(places)


def test_a_made_node_can_be_changed_as_libcst_s_own() -> None:
    (line,) = made("loss = model(x, y=1)\n").body
    assert isinstance(line, cst.SimpleStatementLine)
    (assign,) = line.body
    assert isinstance(assign, cst.Assign)
    changed = assign.with_changes(value=cst.Name("z"))
    assert cst.Module([]).code_for_node(changed) == "loss = z"
    assert isinstance(assign.value, cst.Call)
    assert assign.value.deep_equals(cst.parse_expression("model(x, y=1)").with_changes(args=assign.value.args))
