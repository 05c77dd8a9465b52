"""The table of public programs in `docs/programs.md`, made of `docs/programs.json` (`tools/programs.py`)."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
COLUMNS = ("program", "source", "`trace`", "`verify`", "plain", "traced", "times", "verified")
HEAD = f"| {' | '.join(COLUMNS)} |\n|---|---|---|---{'|--:' * 4}|"


def failed(found: dict[str, Any]) -> str:
    """That a stage came to no report: it took too long, or the program raised."""
    return "not finished" if found["exit"] is None else "**fails**"


def traced(found: dict[str, Any] | None) -> str:
    """What `trace` said of a program."""
    if found is None:
        return "not run"
    if "growing" not in found:
        return failed(found)
    growing = ", ".join(f"`{place}`" for place in dict.fromkeys(found["leaks"]))
    collected = ", ".join(f"`{place}`" for place in dict.fromkeys(found.get("gathered", ())))
    said = f"grows at {growing}" if growing else "no growth"
    return f"{said}; collected at {collected}" if collected else said


def verified(found: dict[str, Any] | None) -> str:
    """What `verify` said of a program."""
    if found is None:
        return "not run"
    if "findings" not in found:
        return failed(found)
    counts: dict[str, int] = {}
    for code, verdict in found["findings"]:
        counts[f"{code} {verdict}"] = counts.get(f"{code} {verdict}", 0) + 1
    return ", ".join(f"{text} ({count})" if count > 1 else text for text, count in counts.items()) or "no findings"


def seconds(found: dict[str, Any] | None) -> str:
    """The processor's seconds and, in brackets, those of the clock."""
    if found is None:
        return ""
    if found["exit"] is None:
        return f"> {found['seconds']:.0f}"
    if "processor" not in found:
        return f"({found['seconds']:.0f})"
    return f"{found['processor']:.0f} ({found['seconds']:.0f})"


def overhead(plain: dict[str, Any] | None, trace: dict[str, Any] | None) -> str:
    """How many times the processor time of the plain run the traced one takes, imports included in both."""
    if not plain or not trace or plain["exit"] != 0 or not plain.get("processor") or not trace.get("processor"):
        return ""
    return f"{trace['processor'] / plain['processor']:.1f}"


def table() -> str:
    """The programs, one a line."""
    kept = json.loads((ROOT / "docs" / "programs.json").read_text(encoding="utf-8"))
    listed = tomllib.loads((ROOT / "tools" / "programs.toml").read_text(encoding="utf-8"))
    lines = [HEAD]
    for program in listed["programs"]:
        found = kept["programs"].get(program["title"], {})
        folder, _, rest = program["where"].partition("/")
        repository, commit = listed["repositories"][folder], kept["commits"][folder]
        script = program.get("script") or program["module"].replace(".", "/") + ".py"
        path = "/".join(part for part in (rest, script) if part)
        source = f"[{repository.partition('/')[2]}](https://github.com/{repository}/blob/{commit}/{path})"
        said = (traced(found.get("trace")), verified(found.get("verify")))
        plain, trace, verify = (found.get(stage) for stage in ("plain", "trace", "verify"))
        times = [seconds(plain), seconds(trace), overhead(plain, trace), seconds(verify)]
        lines.append(f"| {program['title']} | {source} | {' | '.join([*said, *times])} |")
    return "\n" + "\n".join(lines) + "\n\n"


def machine() -> str:
    """When and on what the programs were run."""
    kept = json.loads((ROOT / "docs" / "programs.json").read_text(encoding="utf-8"))
    return (
        f"\n{kept['date']}, torch {kept['torch']}, Python {kept['python']}, {kept['cores']} cores of a shared machine "
        "that was busy, one thread for each program.\n\n"
    )


MAKERS: dict[str, Callable[[], str]] = {"programs": table, "programs-machine": machine}
