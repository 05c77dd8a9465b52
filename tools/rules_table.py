"""Write the table of rules into README.md: `python tools/rules_table.py` (`--check` only compares).

Exit status 1 with `--check` when the table in the file is not that of the registry.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from torchmemlint.rules.registry import all_rules

README = Path(__file__).parent.parent / "README.md"
START, END = "<!-- rules: written by tools/rules_table.py -->\n", "<!-- end of rules -->"


def table() -> str:
    """The rules as a Markdown table."""
    lines = ["| code | name | severity | on by default | fix |", "|---|---|---|---|---|"]
    for rule in all_rules():
        fix = rule.fix.value if rule.fix else ""
        lines.append(f"| {rule.code} | {rule.name} | {rule.severity.value} | {'yes' if rule.on else 'no'} | {fix} |")
    return "\n" + "\n".join(lines) + "\n\n"


def with_table(text: str) -> str:
    """The document with its table renewed; ValueError where the marks are missing."""
    before, _, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"{README.name} has no place for the table of rules")
    return before + START + table() + END + after


def main() -> int:
    """Write or compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only say whether the table is up to date")
    text = README.read_text(encoding="utf-8")
    renewed = with_table(text)
    if parser.parse_args().check:
        return int(text != renewed)
    README.write_text(renewed, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
