"""Resolved settings: what applies to the files of one project."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path, PurePath

from pathspec import GitIgnoreSpec

from torchmemlint.config.contracts import Framework
from torchmemlint.config.errors import ConfigError
from torchmemlint.config.layers import Layer
from torchmemlint.config.limits import DEFAULT, Limits, limits_of
from torchmemlint.config.names import BASELINE
from torchmemlint.config.presets import BY_NAME
from torchmemlint.config.requirement import Required
from torchmemlint.config.selection import Selection, enabled, expand, specificity
from torchmemlint.doubts import Confidence
from torchmemlint.findings import Severity
from torchmemlint.immutable import immutable
from torchmemlint.measured import FILE_NAME
from torchmemlint.regular import is_within
from torchmemlint.rules import registry
from torchmemlint.rules.registry import RuleSet
from torchmemlint.source.wildcards import spec_of

DEFAULT_EXCLUDED_NAMES = frozenset(
    """
    .bzr .direnv .eggs .git .git-rewrite .hg .hypothesis .ipynb_checkpoints .mypy_cache .nox .pants.d .pyenv
    .pytest_cache .pytype .ruff_cache .svn .torchmemlint_cache .tox .venv .vscode __pycache__ __pypackages__
    _build buck-out build dist node_modules site-packages venv
    """.split()
)


@immutable()
class Settings:
    """What to check, and how, in the files below `root`."""

    root: Path  # patterns are relative to it
    source: Path | None = None  # the configuration file
    preset: str = "default"
    rules: frozenset[str] = frozenset()  # codes
    per_file_ignores: tuple[tuple[str, frozenset[str]], ...] = ()
    severities: tuple[tuple[str, Severity], ...] = ()  # by code
    fail_on: Severity = Severity.WARNING
    confidence: Confidence = Confidence.LIKELY  # the least that is reported
    exclude: tuple[str, ...] | None = None  # None: DEFAULT_EXCLUDED_NAMES
    extend_exclude: tuple[str, ...] = ()
    respect_gitignore: bool = True
    cache_dir: Path | None = None
    measurements: Path | None = None  # None: FILE_NAME beside the configuration
    baseline: Path | None = None  # None: BASELINE beside the configuration, if it is there
    given_torch: str | None = None  # `target-torch`
    required_torch: Required | None = None  # what counts where that is not given: what the nearest file asks for
    contracts: tuple[Framework, ...] = ()  # besides the linter's own
    limits: Limits = DEFAULT
    extend: tuple[str, ...] = ()  # what brings rules besides the linter's own and those of installed plugins

    @property
    def target_torch(self) -> str | None:
        """The oldest release of torch that the code supports; None: the newest."""
        if self.given_torch is None and self.required_torch is not None:
            return self.required_torch.release
        return self.given_torch

    @property
    def measurements_file(self) -> Path:
        """Where the figures of findings that were verified lie, if there are any."""
        return self.measurements or self.root / FILE_NAME

    @property
    def baseline_file(self) -> Path:
        """Where the findings that are known lie, if there are any."""
        return self.baseline or self.root / BASELINE

    def rules_for(self, path: str) -> frozenset[str]:
        """The codes of the rules to check in the file at an absolute path."""
        codes = self.rules
        for pattern, ignored in self.per_file_ignores:
            negated = pattern.startswith("!")
            spec = _spec((pattern[1:] if negated else pattern,))
            if spec.match_file(relative(path, self.root)) is not negated:
                codes -= ignored
        return codes

    def excludes(self, path: str, *, is_directory: bool, names_only: bool = False) -> bool:
        """Whether the file or directory at an absolute path is left out: by its name, or (unless
        `names_only`) by a pattern of the configuration.
        """
        if self.exclude is None and path.rpartition(os.sep)[2] in DEFAULT_EXCLUDED_NAMES:
            return True
        patterns = (*(self.exclude or ()), *self.extend_exclude)
        if names_only or not patterns:
            return False
        return _spec(patterns).match_file(relative(path, self.root) + ("/" if is_directory else ""))


def resolve(layer: Layer, root: Path, source: Path | None, command_line: Sequence[Selection] = ()) -> Settings:
    """Settings from a configuration layer and the selections that stand over it."""
    rules = registry.known(layer.extend or ())
    off = tuple(selector for selector, level in layer.severity or () if level is None)
    for selection in command_line:
        _speaks_of_rules(selection, rules, source)
    own = Selection(layer.select, layer.extend_select or (), (*(layer.ignore or ()), *off), layer.preset)
    severities: dict[str, Severity] = {}
    for selector, level in sorted(layer.severity or (), key=lambda item: specificity(item[0])):
        if level is not None:
            severities.update(dict.fromkeys(expand(selector, rules), level))
    for pattern in (*(layer.exclude or ()), *(layer.extend_exclude or ())):
        _validate(pattern, source)
    for pattern, _ in layer.per_file_ignores or ():
        _validate(pattern, source)
    return Settings(
        root=root,
        source=source,
        preset=layer.preset or "default",
        rules=enabled((own, *command_line), rules),
        per_file_ignores=tuple(
            (pattern, frozenset().union(*(expand(selector, rules) for selector in selectors)))
            for pattern, selectors in layer.per_file_ignores or ()
        ),
        severities=tuple(sorted(severities.items(), key=lambda item: item[0])),
        fail_on=layer.fail_on or BY_NAME[layer.preset or "default"].fail_on,
        confidence=layer.confidence or Confidence.LIKELY,
        exclude=layer.exclude,
        extend_exclude=layer.extend_exclude or (),
        respect_gitignore=layer.respect_gitignore is not False,
        cache_dir=_below("cache-dir", layer.cache_dir, root, source),
        measurements=_below("measurements", layer.measurements, root, source, FILE_NAME),
        baseline=_below("baseline", layer.baseline, root, source, BASELINE),
        given_torch=layer.target_torch,
        contracts=layer.contracts or (),
        limits=limits_of(layer.limits),
        extend=layer.extend or (),
    )


_ELSEWHERE = {
    "cache-dir": "`--cache-dir` and TORCHMEMLINT_CACHE_DIR may name another place",
    "baseline": "`--baseline` may name another place",
    "measurements": "`verify --record-file` may name another place",
}


def _below(key: str, given: str | None, root: Path, source: Path | None, default: str = "") -> Path | None:
    """What a configuration names for us to read or write: whose code is checked has no say in what lies elsewhere.

    Neither by dots nor by links, not even under the name that is the default.
    """
    path = Path(os.path.normpath(root / Path(given or default).expanduser()))
    if given is None and not (default and path.is_symlink()):
        return None
    if not path.is_relative_to(root) or path == root or not is_within(path, root):
        raise ConfigError(f"{source or 'command line'}: `{key}` leads out of {root}: {_ELSEWHERE[key]}")
    return path if given is not None else None


def _speaks_of_rules(selection: Selection, rules: RuleSet, source: Path | None) -> None:
    """Raises `ConfigError` where what was given for all files names a rule that this configuration does not have."""
    where = f" (the rules are those of {source})" if source is not None and rules.brought_by else ""
    for name in ("select", "extend_select", "ignore"):
        _all_known(name, getattr(selection, name) or (), rules, where)


def _all_known(name: str, selectors: Sequence[str], rules: RuleSet, where: str) -> None:
    try:
        for selector in selectors:
            expand(selector, rules)
    except ConfigError as error:
        raise ConfigError(f"{name}: {error}{where}") from None


def relative(path: str, root: PurePath) -> str:
    """An absolute path relative to `root` with forward slashes; of a path outside, only its name."""
    whole = type(root)(path)
    try:
        return whole.relative_to(root).as_posix()
    except ValueError:
        return whole.name


_WINDOWS = re.compile(r"\\[\w.]|^[A-Za-z]:")  # no letter needs to be escaped


@lru_cache(maxsize=512)
def _spec(patterns: tuple[str, ...]) -> GitIgnoreSpec:
    return spec_of(patterns)


def _validate(pattern: str, source: Path | None) -> None:
    try:
        if _WINDOWS.search(pattern):
            raise ValueError("folders are parted by `/`, on Windows as well")
        _spec((pattern.removeprefix("!"),))
    except ValueError as error:
        raise ConfigError(f"{source or 'command line'}: invalid file pattern `{pattern}`: {error}") from None
