"""What takes an operation's result: places are found through names, and what is not understood is said to be there."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchmemlint.engine.checking import Check
from torchmemlint.flow.fact.formulas import Formula, Formulas
from torchmemlint.flow.fact.operands import Operation
from torchmemlint.flow.fact.origins import is_discrete, is_trained, usual
from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.ir.lower import lower
from torchmemlint.flow.ir.ops import Op
from torchmemlint.knowledge.contracts import contracts

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n"


class Read:
    """The formula of the last function of a text."""

    def __init__(self, text: str) -> None:
        self.rows = text.split("\n")
        unit = lower(text, "layers")
        functions = [function for function in unit.functions if function.name == "f"]
        self.formula: Formula = Formulas(unit).of(functions[-1])

    def text(self, op: Op) -> str:
        row, start, _, end = op.span
        return self.rows[row - 1][start:end]

    def operation(self, text: str) -> Operation:
        read = map(self.formula.read, operations(self.formula.function.body))
        return next(one for one in read if one is not None and self.text(one.op) == text)

    def taken(self, text: str) -> list[tuple[str, str, int]]:
        found = []
        for taking in self.formula.takings(self.operation(text)):
            stands = self.formula.written(taking.temp)
            assert stands is not None
            found.append((self.text(stands), taking.operation.name if taking.operation else "?", taking.index))
        return sorted(found)


def read(body: str, parameters: str = "x, y") -> Read:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return Read(f"{HEAD}def f({parameters}):\n{lines}\n")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return torch.mul(F.softmax(x, 1), y)", [("F.softmax(x, 1)", "mul", 0)]),
        ("p = F.softmax(x, 1)\nreturn y @ p", [("p", "matmul", 1)]),
        ("p: torch.Tensor = F.softmax(x, 1)\nreturn p.sum(0)", [("p", "sum", 0)]),
        ("p = F.softmax(x, 1)\nreturn F.nll_loss(y, target=p)", [("p", "nll_loss", -1)]),
        ("p = F.softmax(x, 1)\nn = p.shape[0] + p.dim()\nreturn p[n]", [("p", "getitem", 0)]),
        ("p = F.softmax(x, 1)\np = p.exp()\nreturn p", [("p", "exp", 0)]),
        ("p = F.softmax(x, 1)\nq = p\nreturn q.exp()", [("q", "exp", 0)]),
        ("p = F.softmax(x, 1)\nreturn p", [("p", "?", 0)]),
        ("p = F.softmax(x, 1)\nreturn [p.log()], {'p': p}", [("p", "log", 0), ("p", "?", 0)]),
        ("self.p = F.softmax(x, 1)\nreturn y", [("F.softmax(x, 1)", "?", 0)]),
        ("p = F.softmax(x, 1)\nif y:\n    p = p + 1\nreturn p", [("p", "add", 0), ("p", "?", 0)]),
        ("p = F.softmax(x, 1)\nreturn lambda: p", [("F.softmax(x, 1)", "?", 0)]),
        ("p = F.softmax(x, 1)\nreturn y(*p)", [("p", "?", 0)]),
        ("p = q = F.softmax(x, 1)\nreturn p.exp() + q", [("p", "exp", 0), ("q", "add", 1)]),
        ("p = F.softmax(x, 1)\np += 1\nreturn p", [("p", "add", 0)]),
        ("p = F.softmax(x, 1)\nreturn torch.cat([p, y])", [("p", "cat", 0)]),
        ("p = F.softmax(x, 1)\nif p is None:\n    return y", []),
        (
            "for _ in y:\n    p = F.softmax(x, 1)\n    if x:\n        continue\n    p = p * 2\nreturn p",
            [("p", "?", 0), ("p", "mul", 0)],
        ),
        ("p = F.softmax(x, 1)\ntry:\n    p = p * 2\nexcept E:\n    pass\nreturn p", [("p", "?", 0), ("p", "mul", 0)]),
        (
            "while x:\n    p = F.softmax(x, 1)\n    if y:\n        break\n    p = 0\nelse:\n    p = 1\nreturn p",
            [("p", "?", 0)],
        ),
        ("p = F.softmax(x, 1)\nwith y as p:\n    return p", []),
        ("p = F.softmax(x, 1)\nreturn p if x else y", [("p", "?", 0)]),
    ],
)
def test_takings(body: str, expected: list[tuple[str, str, int]]) -> None:
    assert read(body).taken("F.softmax(x, 1)") == sorted(expected)


def test_a_change_in_place_is_taken_under_the_name() -> None:
    found = read("t = torch.zeros(2, 3)\nt.scatter_(1, x, 1)\nreturn F.cross_entropy(y, t)")
    assert found.taken("torch.zeros(2, 3)") == [("t", "scatter", 0)]
    assert found.taken("t.scatter_(1, x, 1)") == [("t", "cross_entropy", 1)]


def test_a_module_is_read_as_a_function_is() -> None:
    text = f"{HEAD}p = F.softmax(x, 1)\nq = F.softmax(y, 1)\nprint(p.log(), q.log())\n\ndef g():\n    return q\n"
    unit = lower(text, "script")
    found = Read(f"{HEAD}def f():\n    pass\n")
    found.rows, found.formula = text.split("\n"), Formulas(unit).of(unit.module)
    assert found.taken("F.softmax(x, 1)") == [("p", "log", 0)]
    assert found.taken("F.softmax(y, 1)") == [("F.softmax(y, 1)", "?", 0)]  # a function reads it, too


def test_arguments_by_name_and_by_place() -> None:
    found = read("return F.softmax(x, 1), F.softmax(input=x, dim=1)")
    one, other = found.operation("F.softmax(x, 1)"), found.operation("F.softmax(input=x, dim=1)")
    assert found.formula.integer(one.argument("dim", 1)) == found.formula.integer(other.argument("dim", 1)) == 1
    assert other.keyword("dtype") is None
    assert one.qualified == "torch.nn.functional.softmax"


def test_a_layer_is_read_as_the_function() -> None:
    assert read("layer = nn.Softmax(1)\nreturn layer(x)").operation("layer(x)").name == "softmax"
    assert read("return nn.Softmax(1)(x)").operation("nn.Softmax(1)(x)").name == "softmax"


OWN = """
class Base(nn.Module):
    def __init__(self, width=512, low=1e-6):
        self.layer = nn.Softmax(1)
        self.book = nn.Embedding(4, 4)
        self.width = width
        self.low = low

class Net(Base):
    def f(self, x, least=10 ** -8):
        return {}
"""


def test_attributes_are_what_the_class_or_its_base_puts_there() -> None:
    found = Read(HEAD + OWN.format("self.layer(x)"))
    assert found.operation("self.layer(x)").name == "softmax"


@pytest.mark.parametrize(
    ("text", "value"), [("self.width", 512), ("self.low", 1e-6), ("least", 1e-8), ("self.other", None)]
)
def test_usual_values(text: str, value: object) -> None:
    found = Read(HEAD + OWN.format(f"x + {text}"))
    assert usual(found.formula, found.operation(f"x + {text}").operands[1]) == value


@pytest.mark.parametrize(
    ("text", "trained"), [("self.book(x)", True), ("self.book.weight.t()", True), ("x.t()", False)]
)
def test_what_is_trained(text: str, trained: bool) -> None:
    found = Read(HEAD + OWN.format(f"{text}.exp()"))
    assert is_trained(found.formula, found.operation(f"{text}.exp()").operands[0], contracts()) is trained


@pytest.mark.parametrize(
    ("text", "discrete"),
    [
        ("torch.arange(3)", True),
        ("x.argmax(1)", True),
        ("(x > 0).view(-1)", True),
        ("x.long() + 1", True),
        ("x + 1", False),
        ("torch.arange(3).float()", False),
        ("x", False),
    ],
)
def test_what_is_discrete(text: str, discrete: bool) -> None:
    found = read(f"a = {text}\nreturn a.exp()")
    assert is_discrete(found.formula, found.operation("a.exp()").operands[0]) is discrete


def test_operations_are_followed_through_names() -> None:
    found = read("with torch.no_grad():\n    d = x.unsqueeze(1) - y\n    s = d ** 2\nreturn s.sum(-1)")
    squared = found.formula.of(found.operation("s.sum(-1)").operands[0])
    assert squared is not None
    assert squared.name == "pow"
    assert found.taken("d ** 2") == [("s", "sum", 0)]
    assert found.taken("x.unsqueeze(1) - y") == [("d", "pow", 0)]


@pytest.mark.parametrize(
    ("again", "made"),
    [
        ("d = d ** 2", "pow"),
        ("d **= 2", "pow"),
        ("for d in x: pass", None),
        ("with x as d: pass", None),
        ("d, y = x", None),
        ("if y: d = y", None),
        ("del d", None),
        ("d.mul_(2)", "mul"),
        ("e = d = y", None),
    ],
)
def test_the_last_definition_counts(again: str, made: str | None) -> None:
    found = read(f"d = x - y\n{again}\nreturn d.sum(-1)")
    total = found.formula.of(found.operation("d.sum(-1)").operands[0])
    assert (total.name if total is not None else None) == made


def test_files_without_the_words_are_not_read() -> None:
    text = f"{HEAD}def f(x):\n    return torch.exp(torch.softmax(x, 0))\n"
    facts = Check(text, Path("layers.py")).facts
    assert not list(facts.formulas(frozenset({"log"})))
    assert [one.function.name for one in facts.formulas(frozenset({"exp"}))] == ["<module>", "f"]
    assert facts._formulas is not None
