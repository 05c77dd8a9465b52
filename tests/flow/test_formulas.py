"""What takes an operation's result: places are found through names, and what is not understood is said to be there."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchmemlint.flow.analysis import analyse
from torchmemlint.flow.formulas import Formula, Operation
from torchmemlint.syntax.source_module import SourceModule
from torchmemlint.syntax.text import text_of

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n"


def formula(body: str, parameters: str = "x, y") -> Formula:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    text = f"{HEAD}def f({parameters}):\n{lines}\n    torch.log(torch.softmax(x, 0))\n"
    facts = analyse(SourceModule(text, Path("layers.py")))
    (found,) = facts.formulas.values()
    return found


def operation(found: Formula, text: str) -> Operation:
    return next(one for one in found.operations() if text_of(one.site.node) == text)


def taken(body: str, text: str) -> list[tuple[str, str, int]]:
    found = formula(body)
    return [
        (text_of(taking.node), taking.operation.name if taking.operation else "?", taking.index)
        for taking in found.takings(operation(found, text))
    ]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return torch.mul(F.softmax(x, 1), y)", [("F.softmax(x, 1)", "mul", 0)]),
        ("p = F.softmax(x, 1)\nreturn y @ p", [("p", "MatrixMultiply", 1)]),
        ("p: torch.Tensor = F.softmax(x, 1)\nreturn p.sum(0)", [("p", "sum", 0)]),
        ("p = F.softmax(x, 1)\nreturn F.nll_loss(y, target=p)", [("p", "nll_loss", -1)]),
        ("p = F.softmax(x, 1)\nn = p.shape[0] + p.dim()\nreturn p[n]", [("p", "getitem", 0)]),
        ("p = F.softmax(x, 1)\np = p.exp()\nreturn p", [("p", "exp", 0)]),
        ("p = F.softmax(x, 1)\nq = p\nreturn q.exp()", [("q", "exp", 0)]),
        ("p = F.softmax(x, 1)\nreturn p", [("p", "?", 0)]),
        ("p = F.softmax(x, 1)\nreturn [p.log()], {'p': p}", [("p", "log", 0), ("p", "?", 0)]),
        ("self.p = F.softmax(x, 1)\nreturn y", [("F.softmax(x, 1)", "?", 0)]),
        ("p = F.softmax(x, 1)\nif y:\n    p = p + 1\nreturn p", [("p", "Add", 0), ("p", "?", 0)]),
        ("p = F.softmax(x, 1)\nreturn lambda: p", [("p", "?", 0)]),
        ("p = F.softmax(x, 1)\nreturn y(*p)", [("p", "?", 0)]),
        ("p = q = F.softmax(x, 1)\nreturn p.exp() + q", [("p", "exp", 0), ("q", "Add", 1)]),
    ],
)
def test_takings(body: str, expected: list[tuple[str, str, int]]) -> None:
    assert sorted(taken(body, "F.softmax(x, 1)")) == sorted(expected)


def test_arguments_by_name_and_by_place() -> None:
    found = formula("return F.softmax(x, 1), F.softmax(input=x, dim=1)")
    one, other = operation(found, "F.softmax(x, 1)"), operation(found, "F.softmax(input=x, dim=1)")
    assert text_of(one.argument("dim", 1)) == text_of(other.argument("dim", 1)) == "1"  # type: ignore[arg-type]
    assert other.keyword("dtype") is None
    assert one.qualified == "torch.nn.functional.softmax"


def test_a_layer_is_read_as_the_function() -> None:
    found = formula("layer = nn.Softmax(1)\nreturn layer(x)")
    assert operation(found, "layer(x)").name == "softmax"


def test_what_is_unknown_has_its_operations_all_the_same() -> None:
    found = formula("d = x - y\nreturn (d ** 2).sum(-1)")
    total = operation(found, "(d ** 2).sum(-1)")
    squared = found.of(total.operands[0])
    assert squared is not None
    assert squared.name == "Power"
    difference = found.of(squared.operands[0])
    assert difference is not None
    assert difference.name == "Subtract"


def test_unknown_values_are_followed_through_names_that_are_bound_once() -> None:
    found = formula("with torch.no_grad():\n    d = x.unsqueeze(1) - y\n    s = d ** 2\nreturn s.sum(-1)")
    squared = found.of(operation(found, "s.sum(-1)").operands[0])
    assert squared is not None
    assert squared.name == "Power"
    assert [taking.operation.name for taking in found.takings(squared) if taking.operation] == ["sum"]
    difference = operation(found, "x.unsqueeze(1) - y")
    assert [taking.operation.name for taking in found.takings(difference) if taking.operation] == ["Power"]


@pytest.mark.parametrize("again", ["d = d ** 2", "d **= 2", "for d in x: pass", "with x as d: pass", "d, y = x"])
def test_a_name_that_is_bound_twice_is_not_followed(again: str) -> None:
    found = formula(f"d = x - y\n{again}\nreturn d.sum(-1)")
    total = found.of(operation(found, "d.sum(-1)").operands[0])
    assert total is None or total.name == "Subtract"  # the identity that the walk knows, where it knows one


def test_nothing_is_noted_without_a_sign() -> None:
    text = f"{HEAD}def f(x):\n    return torch.exp(torch.softmax(x, 0))\n"
    assert analyse(SourceModule(text, Path("layers.py"))).formulas == {}
