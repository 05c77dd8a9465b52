"""The configuration options: their types, defaults and documentation, and how each value is read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from torchmemlint.config.contracts import read_frameworks
from torchmemlint.config.errors import ConfigError, did_you_mean
from torchmemlint.config.limits import DEFAULT, MAX_NESTING, NAMES, read_limits
from torchmemlint.config.names import BASELINE
from torchmemlint.config.presets import BY_NAME, PRESETS
from torchmemlint.doubts import Confidence
from torchmemlint.findings import Severity
from torchmemlint.immutable import immutable
from torchmemlint.measured import FILE_NAME

T = TypeVar("T")

OFF = "off"
MODULE = r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*"  # its dotted name
VERSION = r"[0-9]+\.[0-9]+(\.[0-9]+)?"  # of torch
_SEVERITIES = {severity.value: severity for severity in Severity}
_CONFIDENCES = {confidence.value: confidence for confidence in Confidence}


@immutable()
class Option:
    """One key of `[tool.torchmemlint]`."""

    key: str
    type: str
    default: str
    doc: str
    example: str
    read: Callable[[object], object]  # raises ConfigError with what is wrong, without file or key
    mentions: Callable[[Any], Iterable[str]] = lambda value: ()  # the rule selectors in what was read


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
                "that is checked run code: give it on the command line, by --extend"
            )
    return found


def _selectors_by_pattern(ignores: Iterable[tuple[str, tuple[str, ...]]]) -> Iterator[str]:
    return (selector for _, selectors in ignores for selector in selectors)


def _first(pairs: Iterable[tuple[str, object]]) -> Iterator[str]:
    return (selector for selector, _ in pairs)


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


OPTIONS = (
    Option(
        "preset",
        " or ".join((", ".join(f'"{one.name}"' for one in PRESETS[:-1]), f'"{PRESETS[-1].name}"')),
        '"default"',
        "Rules for an occasion, with the severity that fails a run. `select` replaces "
        "its rules, `extend-select` and `ignore` change them, and `fail-on` wins over it.",
        'preset = "leaks-only"',
        preset,
    ),
    Option(
        "select",
        "list of rule selectors",
        "the rules that are on by default",
        "Rules to check: codes (`TML101`), prefixes (`TML1`), names (`graph-accumulation`) or `ALL`. "
        "The more specific selector wins over the less specific one.",
        'select = ["TML1", "TML2"]',
        strings,
        tuple,
    ),
    Option(
        "extend-select",
        "list of rule selectors",
        "[]",
        "Rules to check besides the selected ones.",
        'extend-select = ["TML301"]',
        strings,
        tuple,
    ),
    Option(
        "ignore",
        "list of rule selectors",
        "[]",
        "Rules not to check.",
        'ignore = ["TML301"]',
        strings,
        tuple,
    ),
    Option(
        "per-file-ignores",
        "table of file pattern to list of rule selectors",
        "{}",
        "Rules not to check in the files that match a pattern (gitignore syntax, relative to the configuration's "
        "directory). A pattern that begins with `!` stands for all other files.",
        '[tool.torchmemlint.per-file-ignores]\n"tests/**" = ["TML2"]',
        ignores_by_pattern,
        _selectors_by_pattern,
    ),
    Option(
        "severity",
        'table of rule selector to "error", "warning", "advice" or "off"',
        "{}",
        "Severities that differ from the rules' own. `off` is the same as `ignore`.",
        '[tool.torchmemlint.severity]\nTML301 = "off"\neval-without-no-grad = "error"',
        severities,
        _first,
    ),
    Option(
        "extend",
        "list of modules",
        "[]",
        "Modules with rules of your own, besides those of installed plugins, which need not be named. They must be "
        "installed beside torchmemlint; files and folders are given on the command line, by `--extend` "
        "(`docs/plugins.md`).",
        'extend = ["acme_rules"]',
        modules,
    ),
    Option(
        "fail-on",
        '"error", "warning" or "advice"',
        '"warning"',
        "The least severity that makes the exit code 1.",
        'fail-on = "error"',
        severity,
    ),
    Option(
        "confidence",
        '"certain", "likely" or "possible"',
        '"likely"',
        "The least confidence of the findings that are reported. What is less certain is neither reported nor fixed, "
        "counts for nothing, and does not go into a baseline (`docs/confidence.md`).",
        'confidence = "certain"',
        confidence,
    ),
    Option(
        "exclude",
        "list of file patterns",
        "version control, virtual environments, caches, build and dist",
        "Files and directories to leave out (gitignore syntax, relative to the configuration's directory). "
        "Replaces the default.",
        'exclude = ["third_party/"]',
        strings,
    ),
    Option(
        "extend-exclude",
        "list of file patterns",
        "[]",
        "Files and directories to leave out besides `exclude`.",
        'extend-exclude = ["generated_*.py"]',
        strings,
    ),
    Option(
        "respect-gitignore",
        "boolean",
        "true",
        "Leave out what `.gitignore` files leave out.",
        "respect-gitignore = false",
        boolean,
    ),
    Option(
        "cache-dir",
        "path",
        "the user's cache directory",
        "Where results are kept between runs: a directory below the configuration's. For any other place there are "
        "`--cache-dir` and the environment variable `TORCHMEMLINT_CACHE_DIR`; `--no-cache` keeps and uses none.",
        'cache-dir = ".torchmemlint_cache"',
        string,
    ),
    Option(
        "measurements",
        "path",
        f'"{FILE_NAME}"',
        "The file in which `torchmemlint verify --record` keeps what findings were measured to cost, relative to the "
        "configuration's directory. `check` reads it, where it is there, and shows the figures beside the findings.",
        'measurements = "benchmarks/measured.json"',
        string,
    ),
    Option(
        "baseline",
        "path",
        f'"{BASELINE}"',
        "The file with the findings that are known and not reported, relative to the configuration's directory. "
        "`torchmemlint baseline create` writes it, and `check` reads it where it is there.",
        'baseline = "ci/torchmemlint-baseline.json"',
        string,
    ),
    Option(
        "target-torch",
        "torch version",
        "what the project requires of torch, else the newest release",
        "The oldest torch release that the code supports; where it is not given, the oldest that `pyproject.toml`, "
        "`setup.py`, `setup.cfg`, `requirements.txt` or conda's `environment.yml` (or `.yaml`, or another file with "
        "`requirements` or `env` in its name) asks for, in the "
        "nearest folder above the checked file (up to the configuration's, or the project's root) where one of them "
        "names a release. Advice names only what that release has: "
        "`torch.backends.cuda.sdp_kernel`, say, is reported from 2.3 on, when its successor came.",
        'target-torch = "2.4"',
        version,
    ),
    Option(
        "limits",
        "table of limit to number",
        "{{ {} }}".format(", ".join(f"{name} = {getattr(DEFAULT, name):g}" for name in NAMES)),
        "What the check of one file may take: `time` in seconds of the processor, `memory` in megabytes that its "
        "process may grow by, `nesting` in levels of statements and expressions in each other "
        f"({MAX_NESTING} at most), and `size` in megabytes of source (a notebook with its outputs may have twenty "
        "times as many). A file that reaches one is passed over and reported as TML000 with the limit's name. 0 is no "
        "limit (`docs/robustness.md`).",
        "[tool.torchmemlint.limits]\ntime = 20\nmemory = 500",
        read_limits,
    ),
    Option(
        "contracts",
        "table of framework to what it promises",
        "{}",
        "What your own libraries do with gradients, graphs and modules, besides what the linter knows of frameworks. "
        "Each framework is a table with the keys that `docs/contracts.md` lists.",
        '[tool.torchmemlint.contracts.acme]\npackages = ["acme"]\nno-grad = ["acme.frozen"]\n'
        'modules = ["acme.Network"]\ndifferentiates = ["acme.Engine.descend"]',
        read_frameworks,
    ),
)
