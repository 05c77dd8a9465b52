"""What of the findings is left out because it is known: by a baseline, or by the history."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from torchmemlint.config.resolver import Resolver
    from torchmemlint.engine.sieve import Sieve


def sieve_for(files: tuple[Path, ...], resolver: Resolver, options: dict[str, Any]) -> Sieve | None:
    """What chooses the findings to report; None if all of them are. Raises ConfigError where it cannot."""
    sieves = [*_baselines(files, resolver, options), *_since(files, resolver, options)]
    if not sieves:
        return None
    from torchmemlint.engine.sieve import Sieves

    return Sieves(sieves)


def _baselines(files: tuple[Path, ...], resolver: Resolver, options: dict[str, Any]) -> Iterator[Sieve]:
    if options["no_baseline"]:
        if options["baseline"] is not None:
            raise click.UsageError("--baseline and --no-baseline contradict each other.")
        return
    settings = [resolver.settings_for(folder) for folder in {file.parent for file in files}]
    if options["baseline"] is not None or any(one.baseline or one.baseline_file.exists() for one in settings):
        from torchmemlint.engine.sieve import Baselines

        baselines = Baselines(resolver, options["baseline"])
        if baselines.read(files):
            yield baselines


def _since(files: tuple[Path, ...], resolver: Resolver, options: dict[str, Any]) -> Iterator[Sieve]:
    if options["new_since"] is not None:
        from torchmemlint.engine.runner import check_texts
        from torchmemlint.engine.since import Since
        from torchmemlint.source.revisions import RevisionError, changes_since

        changes = changes_since(options["new_since"], resolver.root)
        for folder in {file.parent for file in files}:
            if changes.name_of(folder / "-") is None:
                raise RevisionError(f"--new-since: {folder} is not in the repository {changes.top}")
        yield Since(changes, lambda texts: check_texts(texts, resolver, options["jobs"]))
