"""The settings as a JSON Schema, made from the options' own definition: for editors and for validate-pyproject.

Draft 7, which is what taplo and SchemaStore read.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

from torchmemlint.codes import OWN
from torchmemlint.config import readers
from torchmemlint.config.contracts import OF_OPERATIONS, OPERATIONS, RESULTS, VERSION, VOCABULARY, Term, read_frameworks
from torchmemlint.config.limits import MAX_NESTING, MEANINGS, NAMES, read_limits
from torchmemlint.config.options import OPTIONS, Option
from torchmemlint.config.presets import BY_NAME
from torchmemlint.config.versions import SPECIFIERS
from torchmemlint.doubts import Confidence
from torchmemlint.findings import Severity
from torchmemlint.report.formats import FORMATS
from torchmemlint.rules.registry import RuleSet

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ADDRESS = "https://torchmemlint.readthedocs.io/torchmemlint.schema.json"
DRAFT = "http://json-schema.org/draft-07/schema#"

Schema = dict[str, Any]


def settings_schema(rules: RuleSet) -> Schema:
    """The schema of a `torchmemlint.toml`, or of the table `tool.torchmemlint` of a `pyproject.toml`."""
    return {
        "$schema": DRAFT,
        "$id": ADDRESS,
        "title": "torchmemlint",
        "description": "Settings of torchmemlint, a static linter for GPU-memory anti-patterns in PyTorch code.",
        "type": "object",
        "additionalProperties": False,
        "properties": {option.key: _property(option) for option in OPTIONS},
        "definitions": {"selector": _selector(rules)},
    }


def pyproject_schema(rules: RuleSet) -> Schema:
    """The schema of a whole `pyproject.toml`, of which it says nothing but what our table holds."""
    settings = settings_schema(rules)
    definitions = settings.pop("definitions")
    for key in ("$schema", "$id"):
        del settings[key]
    tool = {"type": "object", "properties": {"torchmemlint": settings}}
    return {"$schema": DRAFT, "type": "object", "properties": {"tool": tool}, "definitions": definitions}


def tool_schema(name: str) -> Schema:
    """What validate-pyproject asks for, by our entry point in its group."""
    from torchmemlint.rules import registry

    assert name == "torchmemlint"
    return settings_schema(registry.own())


def _property(option: Option) -> Schema:
    found = {"description": option.doc, **_SHAPES[option.read](option)}
    with contextlib.suppress(tomllib.TOMLDecodeError):  # it is said in words
        found["default"] = tomllib.loads(f"default = {option.default}")["default"]
    if (example := tomllib.loads(option.example).get(option.key)) is not None:
        found["examples"] = [example]
    return found


def _selector(rules: RuleSet) -> Schema:
    """Codes, their beginnings and names of rules that are known; of plugins that are not, what may be a code."""
    prefixes = {rule.code[:end] for rule in rules.rules for end in range(len(rule.code) - 3, len(rule.code))}
    known = ["ALL", *sorted(prefixes), *(rule.code for rule in rules.rules), *(rule.name for rule in rules.rules)]
    plugins = {"type": "string", "pattern": f"^(?!{OWN}|ALL)[A-Z]+[0-9]{{0,3}}$"}
    return {
        "description": "A rule's code, the beginning of codes, a rule's name, or ALL.",
        "anyOf": [{"type": "string", "enum": known}, plugins],
    }


_SELECTOR: Schema = {"$ref": "#/definitions/selector"}


def _array(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _strings(option: Option) -> Schema:
    return _array(_SELECTOR if option.mentions is tuple else {"type": "string"})


def _levels(*more: str) -> Schema:
    return {"type": "string", "enum": [*(severity.value for severity in Severity), *more]}


def _frameworks(_: Option) -> Schema:
    flags = {key: {"type": "boolean", "description": doc} for key, (_, _, doc) in OF_OPERATIONS.items()}
    of_operation = {**flags, "result": {"type": "string", "enum": list(RESULTS)}}
    operation = {"type": "object", "additionalProperties": False, "properties": of_operation}
    dotted = {"type": "string", "pattern": rf"^\s*(?:(?=.*\.){_NAME}|.*\{{.*\}}.*)\s*$"}
    properties: Schema = {
        VERSION: {"type": "string", "description": "What it was checked against."},
        OPERATIONS: {"type": "object", "propertyNames": dotted, "additionalProperties": operation},
    }
    for term in VOCABULARY:
        named = _named(term)
        table = {"type": "object", "propertyNames": named, "additionalProperties": {"type": "string"}}
        properties[term.key] = {"description": term.doc, "anyOf": [_array(named), table]}
    framework = {"type": "object", "additionalProperties": False, "properties": properties}
    return {"type": "object", "additionalProperties": framework}


_NAME = r"!?\.?[\w*\[\]-]+(?:\.[\w*\[\]-]+)*"


def _named(term: Term) -> Schema:
    """Names as they may be written: with braces, anything goes that may become names."""
    one = r"\S+" if term.words else _NAME
    return {"type": "string", "pattern": rf"^\s*(?:{one}|.*\{{.*\}}.*)\s*$"}


def _limits(_: Option) -> Schema:
    bounds: dict[str, Schema] = {name: {"minimum": 0} for name in NAMES}
    bounds["nesting"] = {"minimum": 1, "maximum": MAX_NESTING}
    properties = {name: {"type": "number", "description": MEANINGS[name], **bounds[name]} for name in NAMES}
    return {"type": "object", "additionalProperties": False, "properties": properties}


_SHAPES: Mapping[Callable[[object], object], Callable[[Option], Schema]] = {
    readers.preset: lambda _: {"type": "string", "enum": list(BY_NAME)},
    readers.strings: _strings,
    readers.string: lambda _: {"type": "string"},
    readers.boolean: lambda _: {"type": "boolean"},
    readers.modules: lambda _: _array({"type": "string", "pattern": f"^{readers.MODULE}$"}),
    readers.severity: lambda _: _levels(),
    readers.confidence: lambda _: {"type": "string", "enum": [confidence.value for confidence in Confidence]},
    readers.severities: lambda _: {
        "type": "object",
        "propertyNames": _SELECTOR,
        "additionalProperties": _levels(readers.OFF),
    },
    readers.ignores_by_pattern: lambda _: {"type": "object", "additionalProperties": _array(_SELECTOR)},
    readers.toml_file: lambda _: {"type": "string", "pattern": f"^{readers.TOML}$"},
    readers.output_format: lambda _: {"type": "string", "enum": list(FORMATS)},
    readers.required_version: lambda _: {"type": "string", "pattern": f"^{SPECIFIERS}$"},
    readers.version: lambda _: {"type": "string", "pattern": f"^{readers.VERSION}$"},
    read_limits: _limits,
    read_frameworks: _frameworks,
}
