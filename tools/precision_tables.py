"""The tables of `docs/precision.md` and `docs/precision-history.md`, made of `docs/precision.json`.

A table of the file has its columns, the first of which says what a row is about, and its rows. Each becomes the place
`precision-NAME`. A row of a rule may have a `note`; its rule's name comes from the registry. What a rule had found in
code that it met for the first time stands in `met` and `met-true` (or in `findings` and `true`, with `as-met`): from
these rows the summary by rule is made. What the rules' pages say is from the table `LATEST`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).resolve().parent.parent / "docs" / "precision.json"
SETS = "latest-sets"
LATEST = "latest-sets-rules"
TITLES = {
    "rule": "rule",
    "project": "project",
    "set": "",
    "version": "version",
    "files": "Python files",
    "looked-at": "files looked at",
    "projects": "projects with findings",
    "findings": "findings",
    "met": "as met",
    "after": "after fixing",
    "true": "true",
    "met-true": "true",
    "after-true": "true",
    "false": "false",
    "met-false": "false",
    "trifling": "not worth it",
    "met-trifling": "not worth it",
    "unclear": "unclear",
    "share": "true of all",
    "right": "facts right",
    "met-right": "facts right",
}
TO_THE_LEFT = {"rule", "project", "set", "version"}


@cache
def tables() -> dict[str, dict[str, Any]]:
    """What was read, table by table."""
    return dict(json.loads(SOURCE.read_text(encoding="utf-8")))


def percentage(part: int, whole: int) -> str:
    """A share; empty where there is nothing to share."""
    return f"{part / whole:.0%}" if whole else ""


def subject(row: dict[str, Any], column: str) -> str:
    """What a row is about."""
    from torchmemlint.rules.registry import by_code

    name = f" {by_code()[row['rule']].name}" if column == "rule" else ""
    note = f" ({row['note']})" if "note" in row else ""
    return f"{row[column]}{name}{note}"


def cell(row: dict[str, Any], column: str) -> str:
    """What stands in a column of a row."""
    if column == "share":
        return percentage(row["true"], row["findings"])
    if column == "right":
        return percentage(row["findings"] - row["false"], row["findings"])
    if column == "met-right":
        return percentage(row["met"] - row["met-false"], row["met"])
    return str(row.get(column, ""))


def markdown(columns: list[str], rows: list[list[str]]) -> str:
    """A table, with an empty line on either side."""
    lines = [[TITLES[column] for column in columns]]
    lines += [["---" if column in TO_THE_LEFT else "--:" for column in columns], *rows]
    return "\n" + "\n".join("|" + "".join(f" {one} |" if one else " |" for one in line) for line in lines) + "\n\n"


def table(name: str) -> str:
    """A table of the data."""
    columns = tables()[name]["columns"]
    rows = [[subject(row, columns[0]), *(cell(row, one) for one in columns[1:])] for row in tables()[name]["rows"]]
    return markdown(columns, rows)


def met() -> dict[str, tuple[int, int]]:
    """How many findings of each rule were read in code that it met for the first time, and how many were true."""
    counts: dict[str, tuple[int, int]] = {}
    for one in tables().values():
        for row in one["rows"]:
            if "rule" in row and ("met" in row or row.get("as-met")):
                findings, true = counts.get(row["rule"], (0, 0))
                findings += row.get("met", row.get("findings", 0))
                counts[row["rule"]] = findings, true + row.get("met-true", row.get("true", 0))
    return dict(sorted(counts.items()))


def told(code: str) -> str:
    """What the page of a rule says of its precision; empty where nothing of it was read."""
    sets = sum(" as met: " in row["set"] for row in tables()[SETS]["rows"][:-1])
    last = next((row for row in tables()[LATEST]["rows"] if row["rule"] == code), None)
    if last is not None:
        return (
            f"In the {sets} sets of projects that were read last, as it met them: {last['met']} found, "
            f"{last['met-true']} of them true, {last['met-trifling']} true and hardly worth a change, "
            f"{last['met-false']} false."
        )
    findings, true = met().get(code, (0, 0))
    if not findings:
        return ""
    return (
        f"In the {sets} sets of projects that were read last it found nothing. In earlier ones, as it met them: "
        f"{findings} found, {true} of them true and worth a change."
    )


def by_rule() -> str:
    """The sum of what each rule found where it was met for the first time."""
    columns = ["rule", "met", "met-true", "share"]
    rows = [
        [subject({"rule": code}, "rule"), str(findings), str(true) if findings else "", percentage(true, findings)]
        for code, (findings, true) in met().items()
    ]
    return markdown(columns, rows)


MAKERS: dict[str, Callable[[], str]] = {
    "precision-by-rule": by_rule,
    **{f"precision-{name}": partial(table, name) for name in tables()},
}
