"""What `torchmemlint oom` found out as a SARIF log: a result at each line that had memory, with its bytes.

The result at a line is of the rule that explains it, else of one of the two rules that are defined here. A line of
several devices is one result, of the device where it had most.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torchmemlint.findings import Severity
from torchmemlint.report.places import absolute_path, one_line, repository
from torchmemlint.report.sarif.hashes import line_hashes
from torchmemlint.report.sarif.log import SCHEMA, location, whole_run
from torchmemlint.report.sarif.rules import described, of_rule
from torchmemlint.runtime.ledger import Site
from torchmemlint.sizes import format_size
from torchmemlint.snapshot.report import DeviceReport, Explained, LineUse, Moment, OomReport

FAILED, LIVE = "out-of-memory", "live-memory"
_WHY = {
    FAILED: "a request for GPU memory failed at this line",
    LIVE: "what this line allocated was live at the peak of GPU memory, or when a request failed",
}
_SEVERITIES = {FAILED: Severity.ERROR, LIVE: Severity.ADVICE}
_LEVELS = {FAILED: "error", LIVE: "note"}
_LEAST = 100  # lines with less than one part in so many of the memory are left out


def log(report: OomReport, root: Path) -> dict[str, Any]:
    """The log; paths are relative to the repository around `root`. Lines that are no file's here are left out."""
    results: dict[tuple[str, str, int], dict[str, Any]] = {}
    for device in report.devices:
        for result in _results(device, root):
            place = result["locations"][0]["physicalLocation"]
            key = result["ruleId"], place["artifactLocation"]["uri"], place["region"]["startLine"]
            before = results.get(key)
            if before is None or before["properties"]["bytes"] < result["properties"]["bytes"]:
                results[key] = result
    codes = sorted({result["ruleId"] for result in results.values()})
    rules = [of_rule(code) or described(code, code, _SEVERITIES[code], _WHY[code]) for code in codes]
    found = [{**result, "ruleIndex": codes.index(result["ruleId"])} for result in results.values()]
    notes = [{"level": "note", "message": {"text": note}} for note in report.notes]
    invocation = {"executionSuccessful": True, "toolExecutionNotifications": notes}
    run = whole_run(rules, invocation, repository(root), found)
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _results(device: DeviceReport, root: Path) -> Iterator[dict[str, Any]]:
    for failed in device.failures:
        if Path(failed.site.path).is_file():
            asked = (
                f"asked for {format_size(failed.requested)} on {device.device}: {format_size(failed.missing)} missing"
            )
            yield _result(FAILED, f"out of memory: {asked}", failed.site, failed.requested, root)
    moments = [("when memory ran out", one.moment) for one in device.failures] or [("at the peak", device.peak)]
    for when, moment in moments:
        for line in moment.lines:
            if line.nbytes * _LEAST >= moment.allocated and Path(line.site.path).is_file():
                yield _live(line, moment, f"{when} of {device.device}", root)


def _live(line: LineUse, moment: Moment, when: str, root: Path) -> dict[str, Any]:
    share = f"{100 * line.nbytes / moment.allocated:.0f}%"
    kinds = ", ".join(line.kinds)
    text = f"{format_size(line.nbytes)} ({share}) of what was live {when} was allocated here: {kinds}"
    first = line.findings[0] if line.findings else None
    text += "".join(f". {_said(one, root)}" for one in line.findings)
    result = _result(first.code if first is not None else LIVE, text, line.site, line.nbytes, root)
    result["properties"] |= {"kinds": dict(line.kinds), "blocks": line.blocks}
    others = [one for one in line.findings if (one.path, one.line) != (line.site.path, line.site.line)]
    if others:
        result["relatedLocations"] = [
            {"id": number, "physicalLocation": _place(one.path, one.line, root), "message": {"text": one.code}}
            for number, one in enumerate(others, 1)
        ]
    return result


def _said(one: Explained, root: Path) -> str:
    fix = f" ({one.applicability} fix: {one.fix})" if one.fix else ""
    return one_line(f"{one.code}: {one.message}{fix}").replace("[", "\\[")


def _result(code: str, text: str, site: Site, nbytes: int, root: Path) -> dict[str, Any]:
    hashes = _hashes(Path(site.path))
    name = hashlib.sha256(f"{code}\n{Path(site.path).name}\n{site.function}".encode()).hexdigest()[:16]
    prints = {"torchmemlint/oom/v1": name}
    if site.line <= len(hashes):
        prints["primaryLocationLineHash"] = hashes[site.line - 1]
    return {
        "ruleId": code,
        "level": _LEVELS.get(code, "warning"),
        "message": {"text": text},
        "locations": [{"physicalLocation": _place(site.path, site.line, root)}],
        "partialFingerprints": prints,
        "properties": {"bytes": nbytes},
    }


def _place(path: str, line: int, root: Path) -> dict[str, Any]:
    where = location(absolute_path(Path(path), root), repository(root))
    return {"artifactLocation": where, "region": {"startLine": line}}


def _hashes(file: Path) -> list[str]:
    try:
        text = file.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return []
    return line_hashes(text.split("\n")) if text else []
