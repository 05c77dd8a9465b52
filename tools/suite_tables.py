"""The table of `tools/other_suites.py`'s last run, kept in `docs/suites.json`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

KEPT = Path(__file__).resolve().parent.parent / "docs" / "suites.json"
HEAD = (
    "| project | what runs | pass | fail before | safe fixes | places | run | break "
    "| with unsafe ones | places | run | break |",
    f"|---|---|{'--:|' * 10}",
)


def table() -> str:
    """A line for each project, and which fixes broke what."""
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    suites = kept["suites"]
    rows = "\n".join((*HEAD, *(f"| {' | '.join(map(str, _cells(one)))} |" for one in suites)))
    passed, again = sum(one["passed"] for one in suites), sum(one["unsafe"].get("tests", 0) for one in suites)
    safe, every = ({key: sum(one[way].get(key, 0) for one in suites) for key in COUNTS} for way in WAYS)
    versions = " · ".join(f"{name} {version}" for name, version in kept["versions"].items())
    begin = f"{kept['date']} · {kept['machine']} · {versions}"
    said = (
        f"{len(suites)} of the {kept['listed']} projects of the list have been run: {passed:,} tests that pass. "
        f"{safe['fixes']} safe fixes change {safe['places']} places, of which tests run {safe['run']}; with the unsafe "
        f"ones, {every['fixes']} fixes change {every['places']}, of which {again:,} tests run {every['run']}."
    )
    return "\n" + "\n\n".join([begin, rows, said, *_broken(suites)]) + "\n\n"


WAYS = ("safe", "unsafe")
COUNTS = ("fixes", "places", "run")


def _cells(one: dict[str, Any]) -> Iterator[object]:
    yield from (f"{one['name']} {one['version']}", one["kind"], one["passed"], len(one["failed"]))
    for way in WAYS:
        yield from (*(one[way].get(key, "?") for key in COUNTS), len(one[way]["broken"]))


def _broken(suites: list[dict[str, Any]]) -> Iterator[str]:
    for one in suites:
        for way in WAYS:
            if one[way]["broken"]:
                causes = ", ".join(f"`{cause}`" for cause in one[way]["causes"]) or "not found"
                yield f"{one['name']}, {way} fixes: {len(one[way]['broken'])} tests fail by {causes}."


MAKERS: dict[str, Callable[[], str]] = {"suites": table}
