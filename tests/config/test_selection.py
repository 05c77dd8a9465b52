import pytest

from torchmemlint.config.errors import ConfigError
from torchmemlint.config.selection import ALWAYS, Selection, enabled, expand

DEFAULT = {"TML000", "TML001", "TML002", "TML101", "TML102", "TML201", "TML301", "TML401"}


@pytest.mark.parametrize(
    ("selector", "codes"),
    [
        ("TML101", {"TML101"}),
        ("TML1", {"TML101", "TML102"}),
        ("TML10", {"TML101", "TML102"}),
        ("graph-collection", {"TML102"}),
        ("ALL", {*DEFAULT, "TML204"}),
        ("TML", {*DEFAULT, "TML204"}),
    ],
)
def test_expand(selector: str, codes: set[str]) -> None:
    assert expand(selector) == codes


@pytest.mark.parametrize("selector", ["", "TML9", "TML1011", "tml101", "graph", "E501", "T", "all"])
def test_unknown_selectors(selector: str) -> None:
    with pytest.raises(ConfigError, match="Unknown rule selector"):
        expand(selector)


def test_default_is_what_is_on() -> None:
    assert enabled([]) == DEFAULT
    assert enabled([Selection(), Selection()]) == DEFAULT


@pytest.mark.parametrize(
    ("select", "extend", "ignore", "codes"),
    [
        (("TML1",), (), (), {"TML101", "TML102"}),
        (("TML1",), (), ("TML101",), {"TML102"}),
        (("TML101",), (), ("TML1",), {"TML101"}),  # the more specific one wins
        ((), (), (), set()),
        (("TML1",), (), ("TML1",), set()),  # of equals, ignore
        (("ALL",), (), ("TML0", "TML1", "TML2"), {"TML301", "TML401"}),
        (("TML1",), ("TML204",), (), {"TML101", "TML102", "TML204"}),
        (("TML1",), (), ("graph-accumulation",), {"TML102"}),
    ],
)
def test_one_layer(select: tuple[str, ...], extend: tuple[str, ...], ignore: tuple[str, ...], codes: set[str]) -> None:
    assert enabled([Selection(select, extend, ignore)]) - set(ALWAYS) == codes


def test_command_line_over_configuration() -> None:
    configured = Selection(("TML1", "TML2"), (), ("TML101",))
    assert enabled([configured]) - set(ALWAYS) == {"TML102", "TML201", "TML204"}
    assert enabled([configured, Selection(("TML101",))]) - set(ALWAYS) == {"TML101"}
    assert enabled([configured, Selection(None, ("TML4",))]) - set(ALWAYS) == {"TML102", "TML201", "TML204", "TML401"}
    assert enabled([configured, Selection(None, (), ("TML2",))]) - set(ALWAYS) == {"TML102"}


@pytest.mark.parametrize(
    ("code", "name"), [("TML000", "unreadable-file"), ("TML001", "unused-ignore"), ("TML002", "unknown-code")]
)
def test_what_is_about_the_run_is_reported_unless_ignored(code: str, name: str) -> None:
    assert code in enabled([Selection(("TML1",))])
    assert code not in enabled([Selection(("TML1",), (), (code,))])
    assert code not in enabled([Selection(None, (), (name,))])
    assert code not in enabled([Selection(("TML1",), (), ("TML0",))])
