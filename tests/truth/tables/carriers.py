"""Carriers: how the value travels from where it is made to where it is kept."""

from __future__ import annotations

from tests.truth.forms import Carrier

CARRIER: dict[str, Carrier] = {
    "name": Carrier("{v}", "{c}"),
    # containers
    "tuple_item": Carrier("({v}, x.size(0))", "{c}[0]"),
    "list_item": Carrier("[x.size(0), {v}]", "{c}[-1]"),
    "dict_entry": Carrier('{"value": {v}, "count": 1}', '{c}["value"]'),
    "dict_get": Carrier("dict(value={v}, count=1)", '{c}.get("value")'),
    "dict_values": Carrier('{"value": {v}}', "next(iter({c}.values()))"),
    "dict_merged": Carrier('{**{"count": 1}, "value": {v}}', '{c}["value"]'),
    "nested": Carrier('{"out": ({v}, [1])}', '{c}["out"][0]'),
    "zipped": Carrier("list(zip([{v}], [1]))", "{c}[0][0]"),
    "popped": Carrier("[1, {v}]", "{c}.pop()"),
    # objects
    "attribute": Carrier(
        "Box({v})", "{c}.value", ("class Box:", "    def __init__(self, value):", "        self.value = value")
    ),
    "getattr": Carrier("SimpleNamespace(value={v}, count=1)", 'getattr({c}, "value")'),
    "namespace": Carrier("SimpleNamespace(value={v}, count=1)", "{c}.value"),
    "slots": Carrier(
        "Slot({v})",
        "{c}.value",
        (
            "class Slot:",
            '    __slots__ = ("value",)',
            "",
            "    def __init__(self, value):",
            "        self.value = value",
        ),
    ),
    "dataclass": Carrier(
        "Result({v}, 1)", "{c}.value", ("@dataclass", "class Result:", "    value: torch.Tensor", "    count: int = 0")
    ),
    "namedtuple": Carrier("Out({v}, 1)", "{c}.value", ('Out = namedtuple("Out", ["value", "count"])',)),
    "typed_namedtuple": Carrier(
        "Outcome({v}, 1)", "{c}.value", ("class Outcome(NamedTuple):", "    value: torch.Tensor", "    count: int = 0")
    ),
    "property": Carrier(
        "Lazy({v})",
        "{c}.value",
        (
            "class Lazy:",
            "    def __init__(self, inner):",
            "        self._inner = inner",
            "",
            "    @property",
            "    def value(self):",
            "        return self._inner",
        ),
    ),
    "method": Carrier(
        "Answer({v})",
        "{c}.get()",
        (
            "class Answer:",
            "    def __init__(self, inner):",
            "        self.inner = inner",
            "",
            "    def get(self):",
            "        return self.inner",
        ),
    ),
    "getitem": Carrier(
        "Row({v})",
        '{c}["value"]',
        (
            "class Row:",
            "    def __init__(self, inner):",
            "        self.inner = inner",
            "",
            "    def __getitem__(self, key):",
            "        return self.inner",
        ),
    ),
    "iterable": Carrier(
        "Both({v})",
        "next(iter({c}))",
        (
            "class Both:",
            "    def __init__(self, inner):",
            "        self.inner = inner",
            "",
            "    def __iter__(self):",
            "        yield self.inner",
        ),
    ),
    # functions
    "kwargs": Carrier("{v}", "pick(value={c}, count=1)", ("def pick(**values):", '    return values["value"]')),
    "args": Carrier("{v}", "last(1, {c})", ("def last(*values):", "    return values[-1]")),
    "return_value": Carrier("{v}", "same({c})", ("def same(value):", "    return value")),
    "returned_pair": Carrier("{v}", "with_count({c})[0]", ("def with_count(value, n=1):", "    return value, n")),
    "generator_item": Carrier("{v}", "next(items({c}))", ("def items(value):", "    yield value")),
    "lambda": Carrier("(lambda: {v})", "{c}()"),
    "lambda_default": Carrier("(lambda inner={v}: inner)", "{c}()"),
    "partial": Carrier("functools.partial(identity, {v})", "{c}()", ("def identity(value):", "    return value")),
    "conditional": Carrier("({v} if x.size(0) > 0 else None)", "{c}"),
}
