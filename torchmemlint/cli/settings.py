"""Settings for people and programs to read: `--show-settings` and `torchmemlint config show`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

from torchmemlint.config.patterns import Rooted, Text
from torchmemlint.config.settings import DEFAULT_EXCLUDED_NAMES, Settings
from torchmemlint.engine.cache.store import default_folder
from torchmemlint.findings import Applicability


def settings_lines(settings: Settings) -> list[str]:
    """The settings for `--show-settings`."""
    exclude = sorted(DEFAULT_EXCLUDED_NAMES) if settings.exclude is None else settings.exclude
    ignores = ", ".join(f'"{pattern}" = {_list(sorted(codes))}' for pattern, codes in settings.per_file_ignores)
    severities = ", ".join(f'{code} = "{severity.value}"' for code, severity in settings.severities)
    return [
        f'configuration = "{settings.source}"' if settings.source else "configuration = none found",
        f'project-root = "{settings.root}"',
        f'preset = "{settings.preset}"',
        f"rules = {_list(sorted(settings.rules))}",
        f"preview = {_boolean(settings.preview.on)}",
        f"explicit-preview-rules = {_boolean(settings.preview.explicit)}",
        f"per-file-ignores = {{{ignores}}}",
        f"severity = {{{severities}}}",
        f'fail-on = "{settings.fail_on.value}"',
        f'confidence = "{settings.confidence.value}"',
        f"fix = {_boolean(settings.fixes.fix)}",
        f"fix-only = {_boolean(settings.fixes.only)}",
        f"unsafe-fixes = {_boolean(settings.fixes.unsafe)}",
        f"show-fixes = {_boolean(settings.fixes.shown)}",
        f"unfixable = {_list(_trusted(settings, Applicability.HINT))}",
        f"extend-safe-fixes = {_list(_trusted(settings, Applicability.SAFE))}",
        f"extend-unsafe-fixes = {_list(_trusted(settings, Applicability.UNSAFE))}",
        f'output-format = "{settings.output_format}"',
        f"exclude = {_list(map(str, exclude))}",
        f"extend-exclude = {_list(map(str, settings.extend_exclude))}",
        f"respect-gitignore = {_boolean(settings.respect_gitignore)}",
        f"force-exclude = {_boolean(settings.force_exclude)}",
        f'cache-dir = "{settings.cache_dir or default_folder()}"',
        f'measurements = "{settings.measurements_file}"',
        f'baseline = "{settings.baseline_file}"',
        f'target-torch = "{settings.target_torch}"' if settings.target_torch else "target-torch = the newest release",
        f"limits = {{{', '.join(f'{name} = {value:g}' for name, value in asdict(settings.limits).items())}}}",
        f"plugins = {_list(settings.plugins)}",
        f"contracts = {_list(framework.name for framework in settings.contracts)}",
    ]


def settings_table(settings: Settings) -> dict[str, object]:
    """The settings by the keys of the options, as one could write them; None where there is no way to write it."""
    exclude = sorted(DEFAULT_EXCLUDED_NAMES) if settings.exclude is None else settings.exclude
    ignores = {str(pattern): sorted(codes) for pattern, codes in settings.per_file_ignores}
    return {
        "select": sorted(settings.rules),
        "preview": settings.preview.on,
        "explicit-preview-rules": settings.preview.explicit,
        "per-file-ignores": ignores if _is_own(settings, (one for one, _ in settings.per_file_ignores)) else None,
        "severity": {code: severity.value for code, severity in settings.severities},
        "plugins": list(settings.plugins),
        "fail-on": settings.fail_on.value,
        "confidence": settings.confidence.value,
        "fix": settings.fixes.fix,
        "fix-only": settings.fixes.only,
        "unsafe-fixes": settings.fixes.unsafe,
        "show-fixes": settings.fixes.shown,
        "unfixable": _trusted(settings, Applicability.HINT),
        "extend-safe-fixes": _trusted(settings, Applicability.SAFE),
        "extend-unsafe-fixes": _trusted(settings, Applicability.UNSAFE),
        "output-format": settings.output_format,
        "exclude": list(map(str, exclude)) if _is_own(settings, exclude) else None,
        "extend-exclude": list(map(str, settings.extend_exclude))
        if _is_own(settings, settings.extend_exclude)
        else None,
        "respect-gitignore": settings.respect_gitignore,
        "force-exclude": settings.force_exclude,
        "cache-dir": str(settings.cache_dir or default_folder()),
        "measurements": str(settings.measurements_file),
        "baseline": str(settings.baseline_file),
        "target-torch": settings.target_torch,
        "limits": asdict(settings.limits),
        "contracts": None if settings.contracts else {},
    }


def _trusted(settings: Settings, applicability: Applicability) -> list[str]:
    return [code for code, trust in settings.fixes.trust if trust is applicability]


def _is_own(settings: Settings, patterns: Iterable[Text]) -> bool:
    """Are all patterns relative to the folder of the settings?"""
    return not any(isinstance(one, Rooted) and one.folder != settings.root for one in patterns)


def _boolean(value: bool) -> str:
    return str(value).lower()


def _list(values: Iterable[str]) -> str:
    return "[" + ", ".join(f'"{value}"' for value in values) + "]"
