"""What the server makes of the settings that editors send."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchmemlint.server.settings import ClientSettings, read_settings

DEFAULT = ClientSettings()


def test_what_an_editor_sends_where_nothing_is_set_changes_nothing() -> None:
    given = {
        "enable": True,
        "run": "onType",
        "fixAll": True,
        "configuration": None,
        "select": [],
        "extendSelect": [],
        "ignore": [],
        "confidence": None,
        "showSyntaxErrors": True,
        "codeLens": True,
        "workspaceDiagnostics": "open",
        "logLevel": "info",
    }
    assert read_settings(given, DEFAULT, Path("/project")) == (DEFAULT, [])


@pytest.mark.parametrize("given", [None, {}, []])
def test_nothing_is_nothing_however_it_is_written(given: object) -> None:
    assert read_settings(given, DEFAULT, None) == (DEFAULT, [])


def test_an_empty_list_takes_back_what_was_selected_before() -> None:
    before, _ = read_settings({"select": ["TML1"], "ignore": ["TML101"]}, DEFAULT, None)
    assert (before.select, before.ignore) == (("TML1",), ("TML101",))
    after, problems = read_settings({"select": [], "ignore": []}, before, None)
    assert (after, problems) == (DEFAULT, [])


def test_what_is_wrong_is_said_and_leaves_the_setting_as_it_was() -> None:
    given = {"select": ["TML9999"], "run": "always", "slect": [], "confidence": "sure"}
    settings, problems = read_settings(given, DEFAULT, None)
    assert settings == DEFAULT
    assert len(problems) == 4
    assert "`torchmemlint.confidence`: expected one of 'certain', 'likely', 'possible', got 'sure'" in problems
    assert read_settings([1], DEFAULT, None) == (DEFAULT, ["the settings are not an object"])
