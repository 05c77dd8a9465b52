"""An old tree that reads as the new text, with the nodes of what has not changed."""

from __future__ import annotations

import ast
from pathlib import Path
from textwrap import dedent

import libcst as cst
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchmemlint.syntax.grafting import graft
from torchmemlint.syntax.positions import code_ranges
from torchmemlint.syntax.source_module import Piece, SourceModule
from torchmemlint.syntax.trees import Tree
from torchmemlint.syntax.walking import side_by_side

TRAIN = """\
def train(model, loader):
    total = 0  # of what is printed
    for x, y in loader:
        try:
            loss = model(x, y)
        except RuntimeError:
            print("skipped"); continue
        finally:
            seen = 1
        if loss > 3:
            # large
            total += 1
        elif loss > 2:
            total += 2
        else:
            total += 3
            # done
    with open("log") as log:
        while total:
            log.write("x")
    return total
"""
OPERATORS = (cst.BaseAugOp, cst.BaseBinaryOp, cst.BaseBooleanOp, cst.BaseCompOp, cst.BaseUnaryOp)


def check_places(tree: Tree) -> None:
    """The nodes are those of the new text, and stand where libcst's own stand."""
    parsed = cst.parse_module(tree.text)
    pairs = side_by_side(tree.module, parsed)
    assert pairs is not None
    assert ast.dump(ast.parse(tree.module.code)) == ast.dump(ast.parse(tree.text))
    places = code_ranges(parsed)
    for node, other in pairs:
        if not isinstance(node, OPERATORS):  # of which there is one for all places
            assert tree.ranges[id(node)][:2] == places[id(other)][:2]


HEADS = ["def train(model):", "async def train(model, loader):", "@jit\ndef train(model, loader):"]


def piece(text: str) -> Piece:
    (found,) = SourceModule(dedent(text), Path("a.py")).pieces
    return found


def statements(node: cst.CSTNode) -> dict[str, cst.CSTNode]:
    """Simple statements of a tree by their text; each stands there once."""
    found = {}
    stack = [node]
    while stack:
        one = stack.pop()
        stack += one.children
        if isinstance(one, cst.SimpleStatementLine):
            found[", ".join(cst.Module([]).code_for_node(part) for part in one.body)] = one
    return found


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("            seen = 1\n", "            seen = 1\n            more = 2\n", "more"),
        ("            loss = model(x, y)\n", "            loss = model(x, y).mean()\n", "loss ="),
        ("            total += 2\n", "            pass\n", "pass"),
        ("            total += 3\n", "            total += 3\n            x = y\n", "x = y"),
        ("            # done\n", "            # all done\n", "nothing"),
        ("        elif loss > 2:\n            total += 2\n", "", "total += "),  # other clauses: another statement
        ("    return total\n", "\n\n    # the sum\n    return total\n", "nothing"),
        ("    for x, y in loader:\n", "    for x, y in loader:  # batches\n", "nothing"),
        ("        if loss > 3:\n", "        if loss > 3:\n\n", "nothing"),
        ("            total += 1\n", "            total += 1  # one\n", "nothing"),
        ("            log.write", '            """Text\n# of rows\n            """\n            log.write', "Text"),
        ('            print("skipped"); continue\n', '            print("left out"); continue\n', "print"),
    ],
)
def test_what_an_edit_left_alone_keeps_its_nodes(old: str, new: str, changed: str) -> None:
    assert TRAIN.count(old) == 1
    text = TRAIN.replace(old, new)
    before, after = piece(TRAIN), piece(text)
    definition, known = before.definition(), statements(before.module)
    tree = graft(before, after)
    assert tree is not None
    check_places(tree)
    assert tree.module.body[0] is definition
    now = statements(tree.module)
    assert len(now) >= len(known) - 2
    assert all(node is known.get(name) for name, node in now.items() if changed not in name)


@pytest.mark.parametrize("head", HEADS)
def test_another_head_is_another_function(head: str) -> None:
    assert graft(piece(TRAIN), piece(TRAIN.replace("def train(model, loader):", head))) is None


def reads(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_edit_comes_out_as_written_or_is_refused(data: st.DataObject) -> None:
    rows = TRAIN.splitlines(keepends=True)
    for _ in range(data.draw(st.integers(1, 3))):
        row = data.draw(st.integers(1, len(rows) - 1))
        kind = data.draw(st.sampled_from(["delete", "double", "comment", "blank", "pass", "end"]))
        blanks = rows[row][: len(rows[row]) - len(rows[row].lstrip())].strip("\n")
        match kind:
            case "delete" if len(rows) > 3:
                del rows[row]
            case "double":
                rows.insert(row, rows[row])
            case "comment":
                rows.insert(row, f"{blanks}# {row}\n")
            case "blank":
                rows.insert(row, "\n")
            case "pass":
                rows.insert(row, f"{blanks}pass; x = 1\n")
            case "end":
                rows[row] = rows[row].rstrip("\n") + "  # end\n"
    text = "".join(rows)
    if not reads(text) or len(SourceModule(text, Path("a.py")).pieces) != 1:
        return
    new = piece(text)
    tree = graft(piece(TRAIN), new)
    if tree is not None:
        check_places(tree)
