"""Which rules are in preview, by what `docs/precision.json` says of them.

    python tools/rule_stages.py          # what each rule's page should say, where that is something else
    python tools/rule_stages.py --write  # write it into the pages' heads

A rule is stable if at least five of its findings were read in code that it had not met before, and the facts were right
in at least four of five: in the sets that were read last or, where it found nothing in them, in all earlier readings.
All others are in preview: what is known of them is too little, or not good enough. Rules about the run itself are
stable: there is nothing to be read.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Any

import torchmemlint
from torchmemlint.rules.base import Rule, Stage
from torchmemlint.rules.registry import all_rules

sys.path.insert(0, str(Path(__file__).resolve().parent))

from precision_tables import LATEST, tables

READ = 5  # findings, at least
RIGHT = 0.8  # of them, at least
ABOUT_THE_RUN = "TML0"


def figures(code: str) -> tuple[int, int]:
    """How many findings of a rule were read as it met them, and in how many of these the facts were right."""
    latest = next((row for row in tables()[LATEST]["rows"] if row["rule"] == code), None)
    if latest is not None and latest["met"] >= READ:
        return latest["met"], latest["met"] - latest["met-false"]
    rows = [row for table in tables().values() for row in table["rows"] if row.get("rule") == code]
    read = [_of(row) for row in rows]
    return sum(found for found, _ in read), sum(right for _, right in read)


def _of(row: dict[str, Any]) -> tuple[int, int]:
    """Of a row: where it does not say what was false, only what was true counts as right."""
    found = row.get("met", row.get("findings", 0) if "false" in row or row.get("as-met") else 0)
    false = row.get("met-false", row.get("false"))
    return found, found - false if false is not None else row.get("met-true", row.get("true", 0))


def stage_of(code: str) -> Stage:
    """The stage that a rule's figures give it."""
    found, right = figures(code)
    proven = found >= READ and right >= RIGHT * found
    return Stage.STABLE if proven or code.startswith(ABOUT_THE_RUN) else Stage.PREVIEW


def wrong() -> list[tuple[Rule, Stage]]:
    """The rules whose pages say something else, with what they should say."""
    found = [(rule, stage_of(rule.code)) for rule in all_rules() if rule.stage is not Stage.DEPRECATED]
    return [(rule, stage) for rule, stage in found if rule.stage is not stage]


def preview() -> str:
    """What rules in preview found in the sets that were read last, of all that was found there."""
    rows = tables()[LATEST]["rows"]
    early = [row for row in rows if stage_of(row["rule"]) is Stage.PREVIEW]

    def of(key: str) -> str:
        return f"{sum(row[key] for row in early)} of the {sum(row[key] for row in rows)}"

    count = sum(rule.stage is Stage.PREVIEW for rule in all_rules())
    return (
        f"{count} of {len(all_rules())} rules are in preview. In the sets of projects that were read last, they had "
        f"{of('met-true')} true findings and {of('met-false')} false ones, as met. Without them the first would be "
        "lost and the second spared.\n"
    )


def main() -> None:
    """Say what is wrong, or write it."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--write", action="store_true", help="write it into the pages' heads")
    write = options.parse_args().write
    version = ".".join(torchmemlint.__version__.split(".")[:2])
    for rule, stage in wrong():
        found, right = figures(rule.code)
        print(
            f"{rule.code} {rule.name}: {stage.value} ({right} of {found} right), and its page says {rule.stage.value}"
        )
        if write and rule.page is not None:
            text = rule.page.read_text(encoding="utf-8")
            line = f"status: {stage.value} since {version}\n"
            rule.page.write_text(re.sub(r"^status: .*\n", line, text, count=1, flags=re.M), encoding="utf-8")


if __name__ == "__main__":
    main()
