import io

import pytest

from torchmemlint.cli.terminal import knows_links, width_of


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "known"),
    [
        ({}, False),
        ({"TERM": "xterm-256color"}, False),
        ({"TERM": "xterm-kitty"}, True),
        ({"TERM_PROGRAM": "vscode"}, True),
        ({"TERM_PROGRAM": "Apple_Terminal"}, False),
        ({"VTE_VERSION": "6003"}, True),
        ({"VTE_VERSION": "4200"}, False),
        ({"VTE_VERSION": "new"}, False),
        ({"WT_SESSION": "1"}, True),
        ({"TERM_PROGRAM": "vscode", "FORCE_HYPERLINK": "0"}, False),
        ({"FORCE_HYPERLINK": "1"}, True),
    ],
)
def test_links_are_for_terminals_that_are_known_to_show_them(environment: dict[str, str], known: bool) -> None:
    assert knows_links(Terminal(), environment) is known
    assert not knows_links(io.StringIO(), environment)


def test_only_a_terminal_has_a_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "77")
    assert width_of(Terminal()) == 77
    assert width_of(io.StringIO()) == 0
