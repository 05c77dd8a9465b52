"""How large numbers of a program are at most."""

from __future__ import annotations

import pytest

from torchmemlint.flow.fact.numbers import Numbers, argument
from torchmemlint.flow.ir import ops
from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.ir.lower import lower
from torchmemlint.flow.ir.ops import Unit


def units(text: str) -> Unit:
    return lower(text, "program")


def sizes(text: str) -> list[int | None]:
    """The first arguments of all calls of `size`, function by function."""
    unit = units(text)
    return [
        numbers.at_most(argument(op, 0))
        for numbers in map(Numbers, unit.functions)
        for op in operations(numbers.function.body)
        if isinstance(op, ops.Call) and numbers.flow.path(op.callee) == "size"
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("size(3 * 4 + 2)", 14),
        ("size(2 ** 10 // 4)", 256),
        ("n = 64\nsize(n - 1)", 63),
        ("n = 64\nn = 128\nsize(n)", 128),
        ("n = 64 if big else 32\nsize(n)", 64),
        ("size(int(7))", 7),
        ("size(min(unknown, 5))", 5),
        ("size(max(unknown, 5))", None),
        ("size(index % 8)", 7),
        ("size(unknown)", None),
        ("for n in given:\n    size(n)", None),
        ("words = ['a', 'b', 'c']\nsize(len(words))", 3),
        ("class Config:\n    width = 512\nsize(Config.width)", 512),
        ("options = {'size': 2048, 'name': 'a'}\ndef f():\n    size(options['size'] / 2)", 1024),
        ("options = {'size': 2048}\ndef f():\n    size(options['width'])", None),
        ("options = {'size': 2048}\noptions['size'] = given\ndef f():\n    size(options['size'])", None),
        ("options = {'size': 2048}\noptions.update(given)\nsize(options['size'])", None),
        ("words = []\nfor line in given:\n    words.append(line)\nsize(len(words))", None),
        ("words = ['a']\ndef f():\n    words.extend(given)\nsize(len(words))", None),
        ("words = ['a']\ndef f():\n    words = []\n    words.append(given)\nsize(len(words))", 1),
        ("class Config:\n    width: int = 512\ndef f(config):\n    size(config.width)", 512),
        ("parser.add_argument('--batch-size', type=int, default=32)\ndef f(opt):\n    size(opt.batch_size)", 32),
    ],
)
def test_numbers_are_read_where_they_are_written(text: str, expected: int | None) -> None:
    assert sizes(text) == [expected]


def test_parameters_are_what_the_call_gives_that_led_there() -> None:
    unit = units("def f(a, b=7):\n    size(a)\n    size(b)\n    size(a * b)\nf(3)\nf(5, b=2)\n")
    module, function = unit.functions[:2]
    calls = [op for op in operations(module.body) if isinstance(op, ops.Call)]
    sizes = [op for op in operations(function.body) if isinstance(op, ops.Call)]
    found = [[Numbers(function, calls=[call]).at_most(argument(op, 0)) for op in sizes] for call in calls]
    assert found == [[3, 7, 21], [5, 2, 10]]
    assert [Numbers(function).at_most(argument(op, 0)) for op in sizes] == [None, None, None]


def test_options_of_another_file_count_where_none_of_the_own_is_called_so() -> None:
    options = units("parser.add_argument('--width', type=int, default=256)")
    unit = units("def f(opt):\n    size(opt.width)")
    (op,) = [op for op in operations(unit.functions[1].body) if isinstance(op, ops.Call)]
    assert Numbers(unit.functions[1], others=[options]).at_most(argument(op, 0)) == 256


def test_what_another_file_says_counts_where_it_is_imported() -> None:
    unit = units("from settings import width\nfrom data import cities\nsize(width)\nsize(cities.classes)")
    others = [lower("width = 64", "settings"), lower("classes = 19", "data.cities")]
    calls = [op for op in operations(unit.module.body) if isinstance(op, ops.Call)]
    assert [Numbers(unit.module, others=others).at_most(argument(op, 0)) for op in calls] == [64, 19]
