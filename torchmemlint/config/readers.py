"""How the values of configuration options are read: each function takes what TOML gives, or raises `ConfigError`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeVar

from torchmemlint.config.errors import ConfigError, did_you_mean
from torchmemlint.config.presets import BY_NAME
from torchmemlint.config.versions import SPECIFIERS
from torchmemlint.doubts import Confidence
from torchmemlint.findings import Severity
from torchmemlint.report.formats import FORMATS

T = TypeVar("T")

OFF = "off"
MODULE = r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*"  # its dotted name
VERSION = r"[0-9]+\.[0-9]+(\.[0-9]+)?"  # of torch
TOML = r".+\.toml"
_SEVERITIES = {severity.value: severity for severity in Severity}
_CONFIDENCES = {confidence.value: confidence for confidence in Confidence}


def strings(value: object) -> tuple[str, ...]:
    """A list of strings."""
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ConfigError(f"expected a list of strings, found {_kind(value)}")
    return tuple(value)


def string(value: object) -> str:
    """A string."""
    if not isinstance(value, str):
        raise ConfigError(f"expected a string, found {_kind(value)}")
    return value


def boolean(value: object) -> bool:
    """`true` or `false`."""
    if not isinstance(value, bool):
        raise ConfigError(f"expected true or false, found {_kind(value)}")
    return value


def severity(value: object) -> Severity:
    """`error`, `warning` or `advice`."""
    return _choice(value, _SEVERITIES)


def confidence(value: object) -> Confidence:
    """`certain`, `likely` or `possible`."""
    return _choice(value, _CONFIDENCES)


def severities(value: object) -> tuple[tuple[str, Severity | None], ...]:
    """A table from selector to severity; None stands for `off`."""
    choices: dict[str, Severity | None] = {**_SEVERITIES, OFF: None}
    return tuple((selector, _choice(level, choices)) for selector, level in _table(value).items())


def ignores_by_pattern(value: object) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """A table from file pattern to selectors."""
    return tuple((pattern, strings(listed)) for pattern, listed in _table(value).items())


def modules(value: object) -> tuple[str, ...]:
    """A list of dotted names of modules. Whether there are such modules is another question."""
    found = strings(value)
    for name in found:
        if not re.fullmatch(MODULE, name):
            raise ConfigError(
                f"`{name}` is no dotted name of an installed module, such as `acme_rules`. A path would let the tree "
                "that is checked run code: give it on the command line, by --plugins"
            )
    return found


def version(value: object) -> str:
    """A release of torch, such as `2.4` or `2.4.1`."""
    text = string(value)
    if not re.fullmatch(VERSION, text):
        raise ConfigError(f'expected a torch version such as "2.4", found "{text}"')
    return text


def _table(value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise ConfigError(f"expected a table, found {_kind(value)}")
    return value


def _choice(value: object, choices: Mapping[str, T]) -> T:
    text = string(value)
    if text not in choices:
        listed = ", ".join(f'"{choice}"' for choice in choices)
        raise ConfigError(f'expected one of {listed}, found "{text}".{did_you_mean(text, choices)}')
    return choices[text]


def _kind(value: object) -> str:
    names = {bool: "a boolean", int: "an integer", float: "a number", str: "a string", list: "a list", dict: "a table"}
    if isinstance(value, list):
        odd = next((item for item in value if not isinstance(item, str)), None)
        return "a list" if odd is None else f"a list with {names.get(type(odd), type(odd).__name__)}"
    return names.get(type(value), f"a {type(value).__name__}")


def preset(value: object) -> str:
    """The name of a preset."""
    return _choice(value, BY_NAME).name


def toml_file(value: object) -> str:
    """The path of a configuration file. Whether it is there is another question."""
    if isinstance(value, list):
        raise ConfigError(
            'names one configuration file to inherit from, such as `"../pyproject.toml"`; modules with rules are '
            "named by `plugins`"
        )
    text = string(value)
    if not re.fullmatch(TOML, text):
        raise ConfigError(f'expected a file that ends in .toml, found "{text}"')
    return text


def output_format(value: object) -> str:
    """The name of an output format."""
    text = string(value)
    if ":" in text:
        raise ConfigError("a file can be named on the command line only: --output-format FORMAT:FILE")
    return _choice(text, FORMATS).name


def required_version(value: object) -> str:
    """Versions of this program, as `0.2` or `>=0.2,<0.4`."""
    text = string(value)
    if not re.fullmatch(SPECIFIERS, text):
        raise ConfigError(f'expected versions such as ">=0.2,<0.4", found "{text}"')
    return text
