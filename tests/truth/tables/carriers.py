"""Carriers: how the value travels from where it is made to where it is kept."""

from __future__ import annotations

from tests.truth.forms import Carrier

CARRIER: dict[str, Carrier] = {
    "name": Carrier("{v}", "{c}"),
    "tuple_item": Carrier("({v}, x.size(0))", "{c}[0]"),
    "dict_entry": Carrier('{"value": {v}, "count": 1}', '{c}["value"]'),
    "attribute": Carrier(
        "Box({v})", "{c}.value", ("class Box:", "    def __init__(self, value):", "        self.value = value")
    ),
    "dataclass": Carrier(
        "Result({v}, 1)", "{c}.value", ("@dataclass", "class Result:", "    value: torch.Tensor", "    count: int = 0")
    ),
    "namedtuple": Carrier("Out({v}, 1)", "{c}.value", ('Out = namedtuple("Out", ["value", "count"])',)),
    "kwargs": Carrier("{v}", "pick(value={c}, count=1)", ("def pick(**values):", '    return values["value"]')),
    "return_value": Carrier("{v}", "same({c})", ("def same(value):", "    return value")),
    "generator_item": Carrier("{v}", "next(items({c}))", ("def items(value):", "    yield value")),
    "lambda": Carrier("(lambda: {v})", "{c}()"),
}
