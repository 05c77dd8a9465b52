"""Reports of earlier runs: the JSON of `check`, and of a census."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath
from typing import Any

from torchmemlint.census.counting import VERSION, Census, Found, Project, census_of
from torchmemlint.report.json_report import VERSION as FINDINGS


class ReportError(Exception):
    """A file that is no report; the message names it and says why."""


def read_reports(files: Iterable[Path]) -> Census:
    """All reports as one. A project that two of them tell of is refused with `ReportError`."""
    projects: list[Project] = []
    found: list[Found] = []
    errors: list[str] = []
    told_by: dict[str, Path] = {}
    for file in files:
        one = _read(file)
        for project in one.projects:
            if (other := told_by.setdefault(project.name, file)) != file:
                raise ReportError(f"{file}: the project `{project.name}` is in {other}, too")
        projects += one.projects
        found += one.found
        errors += one.errors
    return census_of(projects, found, errors)


def _read(file: Path) -> Census:
    try:
        told = json.loads(file.read_bytes())
    except OSError as error:
        raise ReportError(f"{file}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ReportError(f"{file}: not JSON: {error}") from None
    try:
        if isinstance(told, list) or "schema_version" in told:
            version = FINDINGS if isinstance(told, list) else told["schema_version"]
            if version != FINDINGS:
                raise ReportError(f"{file}: findings of version {version!r}, and this is for version {FINDINGS}")
            found = list(_findings(told if isinstance(told, list) else told["findings"], file.stem))
            return census_of(map(Project, {one.project for one in found} or {file.stem}), found)
        if told["version"] != VERSION:
            raise ReportError(f"{file}: a census of version {told['version']!r}, and this is for version {VERSION}")
        sizes = ("name", "files", "lines", "torch_files", "torch_lines")
        projects = [Project(**{key: one[key] for key in sizes}) for one in told["projects"]]
        return census_of(projects, [Found(**one) for one in told["findings"]], told["errors"])
    except (KeyError, TypeError) as error:
        raise ReportError(f"{file}: neither the JSON of `check` nor of `census` ({error!r})") from None


def _findings(told: Iterable[dict[str, Any]], title: str) -> Iterator[Found]:
    """Those of `check`. Where a file has a whole path, the project is what the report is called."""
    for one in told:
        path = PurePath(one["filename"])
        absolute = path.is_absolute() or len(path.parts) < 2
        yield Found(
            title if absolute else path.parts[0],
            path.as_posix() if absolute else PurePath(*path.parts[1:]).as_posix(),
            one["location"]["row"],
            one["location"]["column"],
            one["code"],
            one["name"],
            one["severity"],
            one["what"],
            one["fingerprint"],
            confidence=one["confidence"],
        )
