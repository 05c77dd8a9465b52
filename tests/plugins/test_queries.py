"""What rules of plugins may ask of single places, and the edits that they may make."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from torchmemlint.fixes.edits import apply_edits
from torchmemlint.flow.facts import FileFacts
from torchmemlint.flow.program import Program
from torchmemlint.plugins import (
    Call,
    Edit,
    add_argument,
    append_call,
    calls,
    carries_graph,
    gradients_on,
    made_by,
    wrap_in,
)
from torchmemlint.syntax.source_module import SourceModule

CLASS = (
    "import acme\n\nclass A:\n    def __init__(self{}):\n        self.e = {}\n\n    def f(s):\n        s.{}.step()\n"
)


def facts_of(text: str) -> FileFacts:
    path = Path("/project/a.py")
    source = SourceModule(dedent(text), path)
    return FileFacts(path, source, Program(source))


def lines(text: str, *names: str) -> list[int]:
    return [call.span.start.row for call in calls(facts_of(text), *names)]


@pytest.mark.parametrize(
    "text",
    [
        "import acme\nengine = acme.Engine()\nengine.step()\n",
        "from acme import Engine as E\nE(3).step()\n",
        "import acme\n\ndef f():\n    engine = acme.Engine()\n    other = engine\n    other.step()\n",
        "import acme\nengine = acme.Engine()\n\ndef f():\n    engine.step()\n",
        "import acme\n\ndef f(engine: acme.Engine):\n    engine.step()\n",
        CLASS.format("", "acme.Engine()", "e"),
        CLASS.format(", e: acme.Engine", "e", "e"),
        "import acme\n\nclass A(acme.Engine):\n    def f(self):\n        self.step()\n",
        "import acme\n\nwith acme.Engine() as engine:\n    engine.step()\n",
        "import acme\n\ndef f(fast):\n    engine = acme.Engine() if fast else None\n    engine.step()\n",
        "import acme\n\ndef f():\n    engine = acme.Engine()\n\n    def g():\n        engine.step()\n    g()\n",
        "import acme\n\ndef f():\n    engine = acme.Engine()\n    run = engine.step\n    run()\n",
    ],
)
def test_a_method_is_found_by_the_class_of_its_object(text: str) -> None:
    spoken = next(row for row, line in enumerate(text.splitlines(), 1) if "step()" in line or line.strip() == "run()")
    assert lines(text, "acme.Engine.step") == [spoken]


@pytest.mark.parametrize(
    "text",
    [
        "import acme\nengine = acme.Motor()\nengine.step()\n",
        "import acme\n\ndef f(engine):\n    engine.step()\n",
        "import acme\nengine = acme.Engine()\nengine = other()\nengine.step()\n",
        "from other import Engine\nengine = Engine()\nengine.step()\n",
        "import acme\nengine = acme.Engine()\nengine.stop()\n",
        CLASS.format("", "acme.Engine()", "other"),
    ],
)
def test_and_not_where_it_is_another(text: str) -> None:
    assert lines(text, "acme.Engine.step") == []


def test_what_is_not_known_has_the_name_that_is_written() -> None:
    text = "import acme\n\ndef f(engine):\n    engine.step()\n    acme.go()\n"
    assert lines(text, "*.step") == [4]
    assert lines(text, "acme.*") == [5]


TRAINING = """
    import torch
    from torch import nn

    def ask(*values):
        pass

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 1)

        def forward(self, x):
            return self.layer(x)

    def train(loader):
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            VALUE
            with torch.no_grad():
                out = model(x)
                INSIDE
                with torch.enable_grad():
                    AGAIN

    @torch.no_grad()
    def evaluate(model, x):
        DECORATED

    def helper(x):
        CALLED

    def off(x):
        with torch.inference_mode():
            helper(x)

    def unknown(x):
        UNCALLED

    train([(torch.ones(2, 3), torch.ones(2, 1))])
    off(torch.ones(1))
"""


def asked(place: str, expression: str) -> tuple[FileFacts, Call]:
    text = TRAINING
    for word in ("VALUE", "INSIDE", "AGAIN", "DECORATED", "CALLED", "UNCALLED"):
        text = text.replace(f" {word}\n", f" ask({expression})\n" if word == place else " pass\n")
    facts = facts_of(text)
    (call,) = calls(facts, "ask")
    return facts, call


@pytest.mark.parametrize(
    ("place", "expected"),
    [("VALUE", True), ("INSIDE", False), ("AGAIN", True), ("DECORATED", False), ("CALLED", False), ("UNCALLED", None)],
)
def test_whether_gradients_are_on(place: str, expected: bool | None) -> None:
    facts, call = asked(place, "x")
    assert gradients_on(facts, call) is expected


@pytest.mark.parametrize(
    ("place", "expression", "expected"),
    [
        ("VALUE", "loss", True),
        ("VALUE", "loss * 2 + 1", True),
        ("VALUE", "torch.stack([loss, y])", True),
        ("VALUE", "loss.sqrt()", True),
        ("VALUE", "loss.detach()", False),
        ("VALUE", "loss.item()", False),
        ("VALUE", "loss.data", False),
        ("VALUE", "loss > 1", False),
        ("VALUE", "torch.zeros(3)", False),
        ("VALUE", "torch.zeros(3, requires_grad=True)", True),
        ("VALUE", "nn.Parameter(torch.zeros(3))", True),
        ("VALUE", "f'{loss}'", False),
        ("VALUE", "x", None),
        ("VALUE", "something(loss)", None),
        ("INSIDE", "out", False),
        ("INSIDE", "loss", True),
        ("INSIDE", "loss + 1", False),
        ("UNCALLED", "x", None),
    ],
)
def test_whether_a_value_carries_a_graph(place: str, expression: str, expected: bool | None) -> None:
    facts, call = asked(place, expression)
    assert carries_graph(facts, call.node.args[0]) is expected


@pytest.mark.parametrize(
    ("expression", "texts"),
    [
        ("loss", ["nn.functional.mse_loss(model(x), y)"]),
        ("model", ["Net()"]),
        ("nothing", []),
        ("1 if x else 2", ["1", "2"]),
    ],
)
def test_what_made_a_value(expression: str, texts: list[str]) -> None:
    facts, call = asked("VALUE", expression)
    assert [span.text(facts.source.rows) for span in made_by(facts, call.node.args[0])] == texts


def test_who_keeps_a_graph_and_for_how_long() -> None:
    facts = facts_of("""
        import torch

        def train(loader):
            model = torch.nn.Linear(3, 1)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            total = 0
            for x, y in loader:
                loss = torch.nn.functional.mse_loss(model(x), y)
                loss.backward()
                optimizer.step()
                total += loss
            return total

        train([])
    """)
    (kept,) = facts.retentions()
    assert (kept.text, kept.how, kept.grows, kept.spent) == ("total += loss", "sum", True, True)
    assert kept.loop is not None
    assert kept.loop.text(facts.source.rows).startswith("for x, y in loader")
    assert "model(x)" in [span.text(facts.source.rows) for span in kept.graphs]


Change = Callable[[FileFacts, Call], tuple[Edit, ...]]


def changed(text: str, change: Change) -> str | None:
    facts = facts_of(text)
    (call,) = calls(facts, "acme.go")
    edits = change(facts, call)
    return apply_edits(facts.source.text, edits) if edits else None


def added(facts: FileFacts, call: Call) -> tuple[Edit, ...]:
    return add_argument(facts, call, "k=1")


def appended(facts: FileFacts, call: Call) -> tuple[Edit, ...]:
    return append_call(facts, call.node.args[0], "detach")


def wrapped(facts: FileFacts, call: Call) -> tuple[Edit, ...]:
    return wrap_in(facts, call, "torch.no_grad()")


def each() -> Iterator[tuple[Change, str, str | None]]:
    yield added, "acme.go()", "acme.go(k=1)"
    yield added, "acme.go(a, b=2)", "acme.go(a, b=2, k=1)"
    yield added, "acme.go(\n    a,\n)", "acme.go(\n    a,\n    k=1,\n)"
    yield added, "acme.go(k=2)", None
    yield added, "acme.go(**options)", None
    yield added, "acme.go(x for x in y)", None
    yield appended, "acme.go(x)", "acme.go(x.detach())"
    yield appended, "acme.go(x + 1)", "acme.go((x + 1).detach())"
    yield appended, "acme.go(é, x)", "acme.go(é.detach(), x)"
    yield wrapped, "y = acme.go(x)", "with torch.no_grad():\n    y = acme.go(x)"
    yield wrapped, "if a:\n  y = acme.go(\n    x)", "if a:\n  with torch.no_grad():\n    y = acme.go(\n      x)"
    yield wrapped, 'acme.go("""a\nb""")', None


@pytest.mark.parametrize(("change", "before", "after"), list(each()))
def test_edits(change: Change, before: str, after: str | None) -> None:
    head = "import acme\n\n"
    expected = None if after is None else f"{head}{after}\n"
    assert changed(f"{head}{before}\n", change) == expected
