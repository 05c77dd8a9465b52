"""Which statements fill a holder, asked of source texts."""

from __future__ import annotations

import pytest

from torchmemlint.runtime.filling import Source, keeping_methods


def test_the_methods_that_keep_are_learned() -> None:
    assert {
        "append",
        "extend",
        "insert",
        "add",
        "update",
        "setdefault",
        "appendleft",
        "extendleft",
    } <= keeping_methods()
    assert not {"remove", "discard", "pop", "clear", "index", "count", "get", "copy", "sort"} & keeping_methods()


@pytest.mark.parametrize(
    ("statement", "filled"),
    [
        ("rows.append(x)", True),
        ("self.rows.extend(f(x))", True),
        ("rows[key] = x", True),
        ("rows['a'][0].append(x)", True),
        ("rows += [x]", True),
        ("rows = [*rows, x]", True),
        ("rows.insert(0, x)", True),
        ("setattr(owner, 'rows', rows)", True),
        ("rows = []", False),
        ("rows['a'] = []", False),
        ("rows.clear()", False),
        ("rows.pop(0)", False),
        ("rows.remove(x)", False),
        ("others.append(x)", False),
        ("rows.append(None)", False),
        ("x = rows[0]", False),
    ],
)
def test_a_container(statement: str, filled: bool) -> None:
    fills = Source(f"def f(self, x):\n    {statement}\n").fills("rows", contents=True)
    assert [(fill.line, fill.function) for fill in fills] == ([(2, "f")] if filled else [])


def test_an_element_is_not_another() -> None:
    source = Source("log['a'].append(x)\nlog['b'].append(x)\nlog[name].append(x)\n")
    assert [fill.line for fill in source.fills("log", contents=True, key="'b'")] == [2, 3]


def test_other_names_of_the_same() -> None:
    source = Source(
        "def add(store, x):\n    store.append(x)\n\n\nclass A:\n    def f(self, x):\n        rows = self.rows\n"
        "        rows.append(x)\n        add(self.rows, x)\n"
    )
    assert [fill.line for fill in source.fills("rows", contents=True)] == [2, 8]


def test_a_value_made_from_itself() -> None:
    source = Source("h = start()\nfor x in xs:\n    y, h = cell(x, h)\n    z = f(y)\n    total += z\n")
    assert [(fill.line, fill.carried) for fill in source.fills("h", contents=False)] == [(1, False), (3, True)]
    assert [(fill.line, fill.carried) for fill in source.fills("total", contents=False)] == [(5, True)]
    assert source.is_carried("h")
    assert source.is_carried("total")
    assert not source.is_carried("y")
    assert not source.is_carried("z")


def test_an_attribute_goes_on_from_call_to_call() -> None:
    source = Source("class A:\n    def f(self, x):\n        self.h = g(x, self.h)\n        self.y = g(x, x)\n")
    assert source.is_carried("h")
    assert not source.is_carried("y")
