"""The JSON Schema of the settings, held against the reader of the settings and read by others."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from validate_pyproject import api, errors, plugins

from torchmemlint.config.contracts import VOCABULARY
from torchmemlint.config.errors import ConfigError
from torchmemlint.config.layers import read_layer
from torchmemlint.config.options import OPTIONS
from torchmemlint.config.schema import pyproject_schema, settings_schema, tool_schema
from torchmemlint.rules import registry

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def fake_rules() -> None:
    """The other tests of this folder have fake rules; these have the real ones."""


SCHEMA = settings_schema(registry.own())
VALIDATOR = jsonschema.Draft7Validator(SCHEMA)
FOREIGN = re.compile(r"(?!TML|ALL)[A-Z]+[0-9]{0,3}")  # may be a plugin's, which the schema cannot know


def reader_takes(table: dict[str, Any]) -> bool:
    try:
        read_layer(table, "here")
    except ConfigError:
        return False
    return True


def test_it_is_a_schema() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    jsonschema.Draft7Validator.check_schema(pyproject_schema(registry.own()))
    assert SCHEMA["$schema"] == "http://json-schema.org/draft-07/schema#"
    assert list(SCHEMA["properties"]) == [option.key for option in OPTIONS]
    assert all(one["description"] for one in SCHEMA["properties"].values())


def test_the_committed_one_is_this_one() -> None:
    assert json.loads((ROOT / "docs/torchmemlint.schema.json").read_text(encoding="utf-8")) == SCHEMA


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.key)
def test_documented_examples_pass(option: Any) -> None:
    parsed = tomllib.loads(option.example)
    table = parsed["tool"]["torchmemlint"] if "tool" in parsed else parsed
    VALIDATOR.validate(table)
    jsonschema.Draft7Validator(pyproject_schema(registry.own())).validate({"tool": {"torchmemlint": table}})


def test_defaults_and_examples_of_the_schema_pass_the_reader() -> None:
    for key, one in SCHEMA["properties"].items():
        for value in (*one.get("examples", ()), *([one["default"]] if "default" in one else ())):
            assert reader_takes({key: value}), (key, value)
            VALIDATOR.validate({key: value})


def test_our_own_configuration_passes() -> None:
    whole = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    VALIDATOR.validate(whole["tool"]["torchmemlint"])
    shipped = tomllib.loads((ROOT / "torchmemlint/knowledge/contracts.toml").read_text(encoding="utf-8"))
    for name, framework in shipped.items():
        assert reader_takes({"contracts": {name: framework}})
        VALIDATOR.validate({"contracts": {name: framework}})


@pytest.mark.parametrize(
    "table",
    [
        {"slect": []},
        {"select": "TML1"},
        {"select": [1]},
        {"select": ["TML9"]},
        {"select": ["TML1011"]},
        {"select": ["tml101"]},
        {"select": ["graph-acumulation"]},
        {"preset": "strickt"},
        {"per-file-ignores": {"a": "TML1"}},
        {"per-file-ignores": ["TML1"]},
        {"severity": {"TML101": "of"}},
        {"severity": {"TML9": "off"}},
        {"fail-on": "off"},
        {"confidence": "high"},
        {"respect-gitignore": "yes"},
        {"cache-dir": 3},
        {"target-torch": "2"},
        {"target-torch": "2.x"},
        {"plugins": ["./x"]},
        {"required-version": "new"},
        {"required-version": ">=0.1,"},
        {"required-version": "~=1"},
        {"required-version": 1},
        {"extend": "../setup.cfg"},
        {"extend": ["acme_rules"]},
        {"output-format": "text"},
        {"output-format": "json:x.json"},
        {"fix": "yes"},
        {"unfixable": ["TML9"]},
        {"extend-per-file-ignores": {"a": "TML1"}},
        {"plugins": ["a..b"]},
        {"contracts": {"acme": []}},
        {"contracts": {"acme": {"no-gard": []}}},
        {"contracts": {"acme": {"no-grad": "acme.x"}}},
        {"contracts": {"acme": {"no-grad": ["acme x"]}}},
        {"contracts": {"acme": {"operations": {"acme.x": {"result": "tensr"}}}}},
        {"contracts": {"acme": {"operations": {"x": {}}}}},
        {"contracts": {"acme": {"version": 2}}},
    ],
)
def test_what_the_reader_refuses_is_refused(table: dict[str, Any]) -> None:
    assert not reader_takes(table)
    assert not VALIDATOR.is_valid(table)


_WORDS = [word for rule in registry.all_rules()[:12] for word in (rule.code, rule.name, rule.code[:4], rule.code[:5])]
_SELECTORS = st.sampled_from([*_WORDS, "ALL", "TML", "all", "TML9", "TML1019", "tml101", "graph", "", "T", " TML1"])
_TEXTS = st.one_of(
    _SELECTORS, st.text("ab./*-_ {},!TML19", max_size=8), st.sampled_from(["2.4", "2.4.1", "error", "off"])
)
_SCALARS = st.one_of(_TEXTS, st.booleans(), st.integers(-2, 3), st.floats(0, 2))
_LISTS = st.lists(st.one_of(_SELECTORS, _SCALARS), max_size=3)
_TABLES = st.dictionaries(_TEXTS, st.one_of(_SCALARS, st.lists(_SELECTORS, max_size=2)), max_size=2)
# No such modules are installed; and whether a version is this one, no schema knows.
_KEYS = [option.key for option in OPTIONS if option.key not in ("contracts", "plugins", "required-version")]
_LEVELS = st.dictionaries(_SELECTORS, st.sampled_from(["off", "error", "of"]))
_VALUES = st.one_of(_SCALARS, _LISTS, st.lists(_SELECTORS, max_size=3), _TABLES, _LEVELS)


def foreign(value: Any) -> bool:
    """Is there a selector in it that may be a plugin's?"""
    if isinstance(value, str):
        return FOREIGN.fullmatch(value) is not None
    if isinstance(value, dict):
        return any(map(foreign, (*value, *value.values())))
    return isinstance(value, list) and any(map(foreign, value))


@settings(max_examples=600, deadline=None)
@given(st.dictionaries(st.one_of(st.sampled_from(_KEYS), st.just("slect")), _VALUES, min_size=1, max_size=2))
def test_schema_and_reader_agree(table: dict[str, Any]) -> None:
    if not foreign(table):
        assert VALIDATOR.is_valid(table) == reader_takes(table)


_NAMES = st.text("ab.*[]!-{}, ", min_size=1, max_size=8)
_TERMS = st.one_of(st.lists(_NAMES, max_size=2), st.dictionaries(_NAMES, st.just("where"), max_size=2), st.just("a"))
_TERM_KEYS = st.sampled_from([*(term.key for term in VOCABULARY[:4]), "version", "no-gard"])
_OPERATION = st.dictionaries(
    st.sampled_from(["result", "graph", "discrete", "x"]), st.sampled_from(["tensor", "value", True, 3]), max_size=2
)
_FRAMEWORK = st.one_of(
    st.dictionaries(_TERM_KEYS, _TERMS, max_size=2),
    st.fixed_dictionaries({"operations": st.dictionaries(_NAMES, _OPERATION, max_size=2)}),
)


@settings(max_examples=400, deadline=None)
@given(_FRAMEWORK)
def test_schema_and_reader_agree_on_contracts(framework: dict[str, Any]) -> None:
    """The schema does not follow names with braces: what these come to is for the reader to say."""
    table = {"contracts": {"acme": framework}}
    if reader_takes(table):
        VALIDATOR.validate(table)
    elif not any("{" in name for name in _names(framework)):
        assert not VALIDATOR.is_valid(table)


def _names(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [name for key, inner in value.items() for name in (key, *_names(inner))]
    return [name for one in value for name in _names(one)] if isinstance(value, list) else [str(value)]


def test_validate_pyproject_reads_it() -> None:
    """Which holds a whole pyproject.toml against the schemas of the tools that it knows."""
    validator = api.Validator(plugins=[plugins.PluginWrapper("torchmemlint", tool_schema)])
    validator({"tool": {"torchmemlint": {"select": ["TML1", "ACM101"], "per-file-ignores": {"tests/**": ["ALL"]}}}})
    with pytest.raises(errors.ValidationError, match=r"tool\.torchmemlint"):
        validator({"tool": {"torchmemlint": {"slect": []}}})


def test_plugins_that_are_there_are_in_it(tmp_path: Path) -> None:
    (tmp_path / "acme.py").write_text((ROOT / "tests/acme_rules.py").read_text())
    made = settings_schema(registry.known((str(tmp_path / "acme.py"),)))
    table = {"select": ["nothing", "ACM101", "ACM1"]}
    jsonschema.Draft7Validator(made).validate(table)
    assert not VALIDATOR.is_valid(table)
