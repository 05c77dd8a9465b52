"""Resolved settings: what applies to the files of one project."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import field
from functools import reduce
from pathlib import Path

from torchmemlint.config.contracts import Framework
from torchmemlint.config.errors import ConfigError
from torchmemlint.config.layers import Layer, override
from torchmemlint.config.limits import DEFAULT, Limits, limits_of
from torchmemlint.config.names import BASELINE
from torchmemlint.config.patterns import Text, any_matches, below, matches, validate
from torchmemlint.config.presets import BY_NAME
from torchmemlint.config.requirement import Required
from torchmemlint.config.selection import Preview, Selection, allowed, deprecations, enabled, expand, specificity
from torchmemlint.doubts import Confidence
from torchmemlint.findings import Applicability, Severity
from torchmemlint.immutable import immutable
from torchmemlint.measured import FILE_NAME
from torchmemlint.rules import registry
from torchmemlint.rules.registry import RuleSet

DEFAULT_EXCLUDED_NAMES = frozenset(
    """
    .bzr .direnv .eggs .git .git-rewrite .hg .hypothesis .ipynb_checkpoints .mypy_cache .nox .pants.d .pyenv
    .pytest_cache .pytype .ruff_cache .svn .torchmemlint_cache .tox .venv .vscode __pycache__ __pypackages__
    _build buck-out build dist node_modules site-packages venv
    """.split()
)


@immutable()
class Fixes:
    """What `check` does with fixes."""

    fix: bool = False
    only: bool = False  # and reports nothing that is left
    unsafe: bool = False  # also those that may change results
    shown: bool = False  # it lists them
    trust: tuple[
        tuple[str, Applicability], ...
    ] = ()  # by code, where it is not for each fix to say; a hint: never applied


@immutable()
class Settings:
    """What to check, and how, in the files below `root`."""

    root: Path  # patterns are relative to it
    source: Path | None = None  # the configuration file
    preset: str = "default"
    rules: frozenset[str] = frozenset()  # codes
    preview: Preview = field(default_factory=Preview)
    per_file_ignores: tuple[tuple[Text, frozenset[str]], ...] = ()
    severities: tuple[tuple[str, Severity], ...] = ()  # by code
    fail_on: Severity = Severity.WARNING
    confidence: Confidence = Confidence.LIKELY  # the least that is reported
    fixes: Fixes = field(default_factory=Fixes)
    output_format: str = "full"
    exclude: tuple[Text, ...] | None = None  # None: DEFAULT_EXCLUDED_NAMES
    extend_exclude: tuple[Text, ...] = ()
    respect_gitignore: bool = True
    force_exclude: bool = False  # also of what is named
    cache_dir: Path | None = None
    measurements: Path | None = None  # None: FILE_NAME beside the configuration
    baseline: Path | None = None  # None: BASELINE beside the configuration, if it is there
    given_torch: str | None = None  # `target-torch`
    required_torch: Required | None = None  # what counts where that is not given: what the nearest file asks for
    contracts: tuple[Framework, ...] = ()  # besides the linter's own
    limits: Limits = DEFAULT
    plugins: tuple[str, ...] = ()  # what brings rules besides the linter's own and those of installed plugins
    notices: tuple[str, ...] = ()  # what the reader of a report should know of these settings

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
            if matches(pattern, path, self.root):
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
        return any_matches(patterns, path, self.root, is_directory=is_directory)


@immutable()
class Given:
    """What stands over all configuration files: the command line's, or a program's."""

    layer: Layer = field(default_factory=Layer)
    selections: tuple[Selection, ...] = ()
    fixable: tuple[Selection, ...] = ()


def resolve(layers: Layer | Sequence[Layer], root: Path, source: Path | None, given: Given | None = None) -> Settings:
    """Settings from layers of configuration, each of which goes before the ones in front of it, and what is over them.

    The rules that are on, and whose fixes may be applied, are chosen by one layer after the other; all else by the
    layers together.
    """
    given = given or Given()
    *below_, last = (layers,) if isinstance(layers, Layer) else layers
    chain = (*below_, override(last, given.layer))
    layer = reduce(override, chain)
    rules = registry.known(layer.plugins or ())
    for selection in (*given.selections, *given.fixable):
        _speaks_of_rules(selection, rules, source)
    severities: dict[str, Severity] = {}
    for selector, level in sorted(layer.severity or (), key=lambda item: specificity(item[0])):
        if level is not None:
            severities.update(dict.fromkeys(expand(selector, rules), level))
    ignores = (*(layer.per_file_ignores or ()), *(layer.extend_per_file_ignores or ()))
    for pattern in (*(layer.exclude or ()), *(layer.extend_exclude or ()), *(pattern for pattern, _ in ignores)):
        validate(pattern, source)
    preview = Preview(layer.preview is not False, layer.explicit_preview_rules is True)
    on = enabled((*map(_of_rules, chain), *given.selections), rules, preview)
    fixable = allowed((*map(_of_fixes, chain), *given.fixable), rules)
    return Settings(
        root=root,
        source=source,
        preset=layer.preset or "default",
        rules=on,
        preview=preview,
        per_file_ignores=tuple(
            (pattern, frozenset().union(*(expand(selector, rules) for selector in selectors)))
            for pattern, selectors in ignores
        ),
        severities=tuple(sorted(severities.items(), key=lambda item: item[0])),
        fail_on=layer.fail_on or BY_NAME[layer.preset or "default"].fail_on,
        confidence=layer.confidence or Confidence.LIKELY,
        fixes=Fixes(
            fix=layer.fix is True,
            only=layer.fix_only is True,
            unsafe=layer.unsafe_fixes is True,
            shown=layer.show_fixes is True,
            trust=_trust(layer, fixable, rules),
        ),
        output_format=layer.output_format or "full",
        exclude=layer.exclude,
        extend_exclude=layer.extend_exclude or (),
        respect_gitignore=layer.respect_gitignore is not False,
        force_exclude=layer.force_exclude is True,
        cache_dir=below("cache-dir", layer.cache_dir, root, source),
        measurements=below("measurements", layer.measurements, root, source, FILE_NAME),
        baseline=below("baseline", layer.baseline, root, source, BASELINE),
        given_torch=layer.target_torch,
        contracts=layer.contracts or (),
        limits=limits_of(layer.limits),
        plugins=layer.plugins or (),
        notices=deprecations(on, rules),
    )


def _of_rules(layer: Layer) -> Selection:
    """What a layer says of which rules are on."""
    off = tuple(selector for selector, level in layer.severity or () if level is None)
    return Selection(layer.select, layer.extend_select or (), (*(layer.ignore or ()), *off), layer.preset)


def _of_fixes(layer: Layer) -> Selection:
    """What a layer says of whose fixes may be applied."""
    return Selection(layer.fixable, layer.extend_fixable or (), layer.unfixable or ())


def _trust(layer: Layer, fixable: frozenset[str], rules: RuleSet) -> tuple[tuple[str, Applicability], ...]:
    """How far the fixes of rules may be trusted, by code, where that is not for each fix to say."""
    said = [(selector, Applicability.SAFE) for selector in layer.extend_safe_fixes or ()]
    said += [(selector, Applicability.UNSAFE) for selector in layer.extend_unsafe_fixes or ()]
    found: dict[str, Applicability] = {}
    for selector, applicability in sorted(said, key=lambda item: specificity(item[0])):  # stable
        found.update(dict.fromkeys(expand(selector, rules), applicability))
    found.update(dict.fromkeys(rules.by_code.keys() - fixable, Applicability.HINT))
    return tuple(sorted(found.items(), key=lambda item: item[0]))


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
