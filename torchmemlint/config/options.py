"""The configuration options: their types, defaults and documentation, and how each value is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from torchmemlint.config import readers
from torchmemlint.config.contracts import read_frameworks
from torchmemlint.config.limits import DEFAULT, MAX_NESTING, NAMES, read_limits
from torchmemlint.config.names import BASELINE
from torchmemlint.config.presets import PRESETS
from torchmemlint.immutable import immutable
from torchmemlint.measured import FILE_NAME
from torchmemlint.report.formats import FORMATS


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


def _selectors_by_pattern(ignores: Iterable[tuple[str, tuple[str, ...]]]) -> Iterator[str]:
    return (selector for _, selectors in ignores for selector in selectors)


def _first(pairs: Iterable[tuple[str, object]]) -> Iterator[str]:
    return (selector for selector, _ in pairs)


OPTIONS = (
    Option(
        "preset",
        " or ".join((", ".join(f'"{one.name}"' for one in PRESETS[:-1]), f'"{PRESETS[-1].name}"')),
        '"default"',
        "Rules for an occasion, with the severity that fails a run. `select` replaces "
        "its rules, `extend-select` and `ignore` change them, and `fail-on` wins over it.",
        'preset = "leaks-only"',
        readers.preset,
    ),
    Option(
        "select",
        "list of rule selectors",
        "the rules that are on by default",
        "Rules to check: codes (`TML101`), prefixes (`TML1`), names (`graph-accumulation`) or `ALL`. "
        "The more specific selector wins over the less specific one.",
        'select = ["TML1", "TML2"]',
        readers.strings,
        tuple,
    ),
    Option(
        "extend-select",
        "list of rule selectors",
        "[]",
        "Rules to check besides the selected ones.",
        'extend-select = ["TML301"]',
        readers.strings,
        tuple,
    ),
    Option(
        "ignore",
        "list of rule selectors",
        "[]",
        "Rules not to check.",
        'ignore = ["TML301"]',
        readers.strings,
        tuple,
    ),
    Option(
        "per-file-ignores",
        "table of file pattern to list of rule selectors",
        "{}",
        "Rules not to check in the files that match a pattern (gitignore syntax, relative to the configuration's "
        "directory). A pattern that begins with `!` means all other files.",
        '[tool.torchmemlint.per-file-ignores]\n"tests/**" = ["TML2"]',
        readers.ignores_by_pattern,
        _selectors_by_pattern,
    ),
    Option(
        "extend-per-file-ignores",
        "table of file pattern to list of rule selectors",
        "{}",
        "Rules not to check in some files, besides those of `per-file-ignores`: of this configuration and of those "
        "that it extends.",
        '[tool.torchmemlint.extend-per-file-ignores]\n"notebooks/**" = ["TML4"]',
        readers.ignores_by_pattern,
        _selectors_by_pattern,
    ),
    Option(
        "severity",
        'table of rule selector to "error", "warning", "advice" or "off"',
        "{}",
        "Severities that differ from the rules' own. `off` is the same as `ignore`.",
        '[tool.torchmemlint.severity]\nTML301 = "off"\neval-without-no-grad = "error"',
        readers.severities,
        _first,
    ),
    Option(
        "plugins",
        "list of modules",
        "[]",
        "Modules with rules of your own, besides those of installed plugins, which need not be named. They must be "
        "installed beside torchmemlint; files and folders are given on the command line, by `--plugins` "
        "(`docs/plugins.md`).",
        'plugins = ["acme_rules"]',
        readers.modules,
    ),
    Option(
        "preview",
        "boolean",
        "true",
        "Whether rules in preview may be on: too few of their findings were read so far, or too few were right "
        "(`torchmemlint rules` lists them). With `false` they are off, whatever selects them.",
        "preview = false",
        readers.boolean,
    ),
    Option(
        "explicit-preview-rules",
        "boolean",
        "false",
        "Check only those rules in preview that are selected by their own code or name.",
        "explicit-preview-rules = true",
        readers.boolean,
    ),
    Option(
        "fail-on",
        '"error", "warning" or "advice"',
        '"warning"',
        "The least severity that makes the exit code 1.",
        'fail-on = "error"',
        readers.severity,
    ),
    Option(
        "confidence",
        '"certain", "likely" or "possible"',
        '"likely"',
        "The least confidence of the findings that are reported. What is less certain is neither reported nor fixed, "
        "counts for nothing, and does not go into a baseline (`docs/confidence.md`).",
        'confidence = "certain"',
        readers.confidence,
    ),
    Option(
        "fix",
        "boolean",
        "false",
        "`check` applies the safe fixes, as with `--fix`; `--no-fix` leaves the files as they are.",
        "fix = true",
        readers.boolean,
    ),
    Option(
        "fix-only",
        "boolean",
        "false",
        "`check` applies fixes and reports nothing that is left, as with `--fix-only`.",
        "fix-only = true",
        readers.boolean,
    ),
    Option(
        "unsafe-fixes",
        "boolean",
        "false",
        "Fixes that may change results are applied, too, wherever fixes are.",
        "unsafe-fixes = true",
        readers.boolean,
    ),
    Option(
        "show-fixes",
        "boolean",
        "false",
        "List what was fixed, by file and rule.",
        "show-fixes = true",
        readers.boolean,
    ),
    Option(
        "fixable",
        "list of rule selectors",
        '["ALL"]',
        "Rules whose fixes may be applied. The more specific selector wins over the less specific one.",
        'fixable = ["TML1"]',
        readers.strings,
        tuple,
    ),
    Option(
        "extend-fixable",
        "list of rule selectors",
        "[]",
        "Rules whose fixes may be applied, besides those of `fixable`.",
        'extend-fixable = ["TML201"]',
        readers.strings,
        tuple,
    ),
    Option(
        "unfixable",
        "list of rule selectors",
        "[]",
        "Rules whose fixes are shown and not applied.",
        'unfixable = ["TML301"]',
        readers.strings,
        tuple,
    ),
    Option(
        "extend-safe-fixes",
        "list of rule selectors",
        "[]",
        "Rules whose unsafe fixes count as safe.",
        'extend-safe-fixes = ["TML201"]',
        readers.strings,
        tuple,
    ),
    Option(
        "extend-unsafe-fixes",
        "list of rule selectors",
        "[]",
        "Rules whose safe fixes count as unsafe. It wins over `extend-safe-fixes` where neither is more specific.",
        'extend-unsafe-fixes = ["TML102"]',
        readers.strings,
        tuple,
    ),
    Option(
        "output-format",
        " or ".join((", ".join(f'"{one}"' for one in [*FORMATS][:-1]), f'"{[*FORMATS][-1]}"')),
        '"full"',
        "How `check` reports (`docs/output.md`). Files for reports are named on the command line.",
        'output-format = "concise"',
        readers.output_format,
    ),
    Option(
        "exclude",
        "list of file patterns",
        "version control, virtual environments, caches, build and dist",
        "Files and directories to leave out (gitignore syntax, relative to the configuration's directory). "
        "Replaces the default.",
        'exclude = ["third_party/"]',
        readers.strings,
    ),
    Option(
        "extend-exclude",
        "list of file patterns",
        "[]",
        "Files and directories to leave out besides `exclude`.",
        'extend-exclude = ["generated_*.py"]',
        readers.strings,
    ),
    Option(
        "respect-gitignore",
        "boolean",
        "true",
        "Leave out what `.gitignore` files leave out.",
        "respect-gitignore = false",
        readers.boolean,
    ),
    Option(
        "force-exclude",
        "boolean",
        "false",
        "Leave out what is excluded even where it is named on the command line, as editors and pre-commit do.",
        "force-exclude = true",
        readers.boolean,
    ),
    Option(
        "cache-dir",
        "path",
        "the user's cache directory",
        "Where results are kept between runs: a directory below the configuration's. For any other place there are "
        "`--cache-dir` and the environment variable `TORCHMEMLINT_CACHE_DIR`; `--no-cache` keeps and uses none.",
        'cache-dir = ".torchmemlint_cache"',
        readers.string,
    ),
    Option(
        "measurements",
        "path",
        f'"{FILE_NAME}"',
        "The file in which `torchmemlint verify --record` keeps what findings were measured to cost, relative to the "
        "configuration's directory. `check` reads it, where it is there, and shows the figures beside the findings.",
        'measurements = "benchmarks/measured.json"',
        readers.string,
    ),
    Option(
        "baseline",
        "path",
        f'"{BASELINE}"',
        "The file with the findings that are known and not reported, relative to the configuration's directory. "
        "`torchmemlint baseline create` writes it, and `check` reads it where it is there.",
        'baseline = "ci/torchmemlint-baseline.json"',
        readers.string,
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
        readers.version,
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
    Option(
        "extend",
        "path of a configuration file",
        "none",
        "A configuration file to inherit from, relative to this one. What this one says wins; lists named `extend-…`, "
        "`plugins` and the tables `severity`, `limits` and `contracts` add up. Patterns and paths stay relative to the "
        "file that has them. The file must lie in the same repository.",
        'extend = "../pyproject.toml"',
        readers.toml_file,
    ),
    Option(
        "required-version",
        "versions",
        "any",
        "The versions of torchmemlint that may use this configuration; any other one stops with an error.",
        'required-version = ">=0.1,<0.3"',
        readers.required_version,
    ),
)
