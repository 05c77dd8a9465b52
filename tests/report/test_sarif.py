"""SARIF: held against OASIS's schema and Microsoft's validator, and what code scanning asks for besides."""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from torchmemlint.doubts import Doubt
from torchmemlint.engine.run import LeftOut, RunReport
from torchmemlint.findings import Applicability, Edit, Finding, Fix, Severity
from torchmemlint.fixes.edits import apply_edits
from torchmemlint.measured import Measured, Verdict
from torchmemlint.report.sarif.hashes import line_hashes
from torchmemlint.report.sarif.rules import LONGEST, describe, shortened
from torchmemlint.rules.registry import all_rules

from .consumers import MODULES, needs_packages
from .samples import ROOT, TRAIN, accumulation, evaluation, loader, render, report, span

SCHEMA = json.loads((Path(__file__).parent / "schemas" / "sarif-2.1.0.json").read_text(encoding="utf-8"))
# OASIS has it here, as the specification does; the copy that is held here lets regions without a place pass.
SCHEMA["definitions"]["region"]["anyOf"] = SCHEMA["definitions"]["region"]["properties"].pop("anyOf")
TOLD = Measured(Verdict.CONFIRMED, "simulated", "A100 40GB", "2.13.0", "2026-11-21", "train.py", 50331648.0, 0, 0)


def log(found: RunReport) -> Any:
    return json.loads(render(found, "sarif"))


def results(*findings: Finding) -> Any:
    return log(report(*findings))["runs"][0]["results"]


def validate(document: Any) -> None:
    jsonschema.Draft202012Validator(SCHEMA).validate(document)


@pytest.fixture
def all_of_it(everything: RunReport) -> RunReport:
    """Every part that a log of ours can have."""
    hint = replace(loader(), measured=TOLD, filename=Path("/elsewhere/a b.py"), fingerprint="")
    doubted = replace(evaluation(), doubts=(Doubt.GIVEN, Doubt.MODE))
    unread = replace(loader(), code="TML000", name="unreadable-file", fix=None)
    unknown = replace(loader(), code="XYZ999", name="of-a-plugin")
    more = (hint, unread, unknown, doubted)
    told = replace(everything, notices=("a notice",), errors=("a.py: internal",), left_out=(LeftOut(1, "in a file"),))
    return replace(told, findings=everything.findings + more)


def test_it_keeps_to_the_schema(all_of_it: RunReport) -> None:
    validate(log(all_of_it))
    validate(log(report()))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("version",), "2.0.0"),
        (("runs", 0, "results", 0, "level"), "advice"),
        (("runs", 0, "results", 0, "message"), {}),
        (("runs", 0, "results", 0, "locations", 0, "physicalLocation", "region"), {"startColumn": 3}),
        (("runs", 0, "results", 0, "surprise"), 1),
        (("runs", 0, "columnKind"), "bytes"),
    ],
)
def test_the_schema_refuses_what_is_wrong(all_of_it: RunReport, place: tuple[Any, ...], value: object) -> None:
    document = log(all_of_it)
    inner = document
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        validate(document)


def multitool(file: Path, folder: Path) -> list[dict[str, Any]]:
    """What Microsoft's validator has to say of a log, by its own rules and those of GitHub's two services."""
    tool = MODULES / ".bin" / "sarif-multitool"
    said = folder / "said.sarif"
    options = [
        "--rule-kind",
        "Sarif;Gh;Ghas",
        "--level",
        "Error;Warning;Note",
        "--quiet",
        "true",
        "--output",
        str(said),
    ]
    command = [str(tool), "validate", f'"{file}"', *(f'"{option}"' for option in options)]  # it goes through a shell
    environment = {**os.environ, "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=environment)
    assert said.exists(), done.stdout + done.stderr
    (run,) = json.loads(said.read_text(encoding="utf-8-sig"))["runs"]
    return [*run["results"], *run["invocations"][0].get("toolExecutionNotifications", [])]


TASTE = {
    "SARIF2002",  # messages by number and arguments
    "SARIF2003",  # which commit it is: services know
    "SARIF2006",  # addresses that answer
    "SARIF2012",  # names of rules in Pascal case: ours have one name everywhere
}


@needs_packages
def test_the_multitool_has_nothing_against_it(all_of_it: RunReport, tmp_path: Path) -> None:
    file = tmp_path / "found.sarif"
    # A file outside of the repository, and one that is not there, it may rightly complain of.
    inside = tuple(one for one in all_of_it.findings if one.filename.is_relative_to(ROOT))
    file.write_text(render(replace(all_of_it, findings=inside), "sarif"))
    said = multitool(file, tmp_path)
    assert {one.get("ruleId") for one in said} <= TASTE, json.dumps(said, indent=1)
    assert all(one["level"] == "note" for one in said)


@needs_packages
def test_the_multitool_finds_what_is_wrong(all_of_it: RunReport, tmp_path: Path) -> None:
    document = log(all_of_it)
    document["runs"][0]["results"][0]["ruleIndex"] = 77
    document["runs"][0]["results"][1]["locations"][0]["physicalLocation"]["region"]["endLine"] = 1
    (tmp_path / "found.sarif").write_text(json.dumps(document))
    levels = [one["level"] for one in multitool(tmp_path / "found.sarif", tmp_path)]
    assert "error" in levels


def test_a_result() -> None:
    (found,) = results(replace(accumulation(), measured=TOLD))
    region = {"startLine": 9, "startColumn": 9, "endLine": 9, "endColumn": 22, "snippet": {"text": "total += loss"}}
    (location,) = found["locations"]
    assert location["physicalLocation"]["artifactLocation"] == {"uri": "src/train.py", "uriBaseId": "%SRCROOT%"}
    assert location["physicalLocation"]["region"] == region
    around = location["physicalLocation"]["contextRegion"]
    assert around["snippet"]["text"] == "\n".join(TRAIN.split("\n")[around["startLine"] - 1 : around["endLine"]])
    assert (found["ruleId"], found["level"]) == ("TML101", "error")
    assert found["message"]["text"] == (
        f"{accumulation().message}. Measured: +48.0 MiB per step (simulated A100 40GB, 2026-11-21)."
    )
    assert found["properties"]["measured"] == TOLD.to_json()
    assert found["partialFingerprints"]["torchmemlint/v1"] == "0123456789abcdef"


def test_what_is_not_in_a_baseline_is_new() -> None:
    document = log(report(accumulation(), loader(), left_out=(LeftOut(3, "in torchmemlint-baseline.json"),)))
    validate(document)
    assert [one["baselineState"] for one in document["runs"][0]["results"]] == ["new", "new"]
    assert all("baselineState" not in one for one in results(accumulation()))


def test_levels() -> None:
    assert [one["level"] for one in results(accumulation(), evaluation(), loader())] == ["error", "warning", "note"]


def test_evidence_is_a_flow_that_ends_at_the_finding_and_goes_through_other_files() -> None:
    (found,) = results(accumulation())
    (flow,) = found["codeFlows"]
    (thread,) = flow["threadFlows"]
    steps = [
        (
            step["location"]["physicalLocation"]["artifactLocation"]["uri"],
            step["location"]["physicalLocation"]["region"]["startLine"],
            step["location"]["message"]["text"],
        )
        for step in thread["locations"]
    ]
    assert [(uri, row) for uri, row, _ in steps] == [
        ("src/train.py", 7),
        ("src/train.py", 8),
        ("src/meter.py", 3),
        ("src/train.py", 5),
        ("src/train.py", 9),
    ]
    assert steps[2][2] == "`meter` keeps its argument"
    assert [one["id"] for one in found["relatedLocations"]] == [1, 2, 3, 4]
    (plain,) = results(loader())
    assert "codeFlows" not in plain
    assert "relatedLocations" not in plain


def apply(text: str, replacements: list[dict[str, Any]]) -> str:
    """As an editor would: from the end of the file to its beginning."""
    rows = text.split("\n")
    for one in sorted(
        replacements, key=lambda one: (-one["deletedRegion"]["startLine"], -one["deletedRegion"]["startColumn"])
    ):
        region = one["deletedRegion"]
        first, last = region["startLine"] - 1, region["endLine"] - 1
        head, tail = rows[first][: region["startColumn"] - 1], rows[last][region["endColumn"] - 1 :]
        rows[first : last + 1] = (head + one["insertedContent"]["text"] + tail).split("\n")
    return "\n".join(rows)


def test_fixes_do_what_ours_do() -> None:
    edits = (
        Edit(span(5, 13, 5, 16), "torch.zeros(())"),
        Edit(span(10, 1, 11, 1), ""),
        Edit(span(9, 22, 9, 22), ".detach()"),
    )
    (found,) = results(replace(accumulation(), fix=Fix("detach `loss`", Applicability.UNSAFE, edits)))
    (fix,) = found["fixes"]
    assert fix["description"]["text"] == "detach `loss` (unsafe: may change results)"
    (change,) = fix["artifactChanges"]
    assert change["artifactLocation"]["uri"] == "src/train.py"
    assert apply(TRAIN, change["replacements"]) == apply_edits(TRAIN, edits)


def test_a_hint_is_told_and_no_fix() -> None:
    (found,) = results(loader())
    assert "fixes" not in found
    assert found["message"]["text"].endswith(". Help: pass `num_workers=`.")


def test_rules_are_those_that_spoke_and_results_name_them() -> None:
    (run,) = log(report(evaluation(), accumulation(), evaluation()))["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["TML101", "TML201"]
    assert [rules[one["ruleIndex"]]["id"] for one in run["results"]] == ["TML201", "TML101", "TML201"]


def test_every_rule_keeps_within_the_limits_of_code_scanning() -> None:
    for rule in all_rules():
        found = describe(replace(accumulation(), code=rule.code))
        assert found["id"] == rule.code
        assert found["name"] == rule.name
        for key in ("shortDescription", "fullDescription"):
            assert 0 < len(found[key]["text"]) <= LONGEST
        assert found["help"]["text"].startswith(f"# {rule.name} ({rule.code})")
        assert "## Use instead" in found["help"]["markdown"]
        assert found["helpUri"].endswith(f"/{rule.code}/")
        properties = found["properties"]
        assert len(properties["tags"]) == 4
        assert properties["precision"] in ("very-high", "high", "medium", "low")
        assert properties["problem.severity"] in ("error", "warning", "recommendation")
        level = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.ADVICE: "note"}[rule.severity]
        assert found["defaultConfiguration"] == {"level": level}


def test_a_rule_that_is_not_known_is_described_by_what_its_finding_says() -> None:
    found = describe(replace(loader(), code="XYZ999", name="of-a-plugin", why="it holds much"))
    assert found["shortDescription"]["text"] == "Of a plugin: it holds much"
    assert found["properties"]["tags"] == ["memory", "performance", "pytorch"]


def test_descriptions_are_cut_at_sentences() -> None:
    assert shortened("One. Two!") == "One. Two!"
    assert shortened("a. " + "b" * 1030 + ".") == "a."
    assert shortened("c" * 2000) == "c" * 1023 + "…"


def test_paths_are_those_of_the_repository(tmp_path: Path) -> None:
    from torchmemlint.report.formats import FORMATS
    from torchmemlint.report.paint import Paint

    (tmp_path / ".git").mkdir()
    root = tmp_path / "packages" / "one"
    names = ["src/ä b%#?.py", "a:b.py", os.fsdecode(b"\xff.py")]
    found = report(
        *(replace(loader(), filename=root / name) for name in names), replace(loader(), filename=Path("/x y.py"))
    )
    (text,) = FORMATS["sarif"].lines(found, root, Paint(False))
    (run,) = json.loads(text)["runs"]
    artifacts = [one["locations"][0]["physicalLocation"]["artifactLocation"] for one in run["results"]]
    assert artifacts == [
        {"uri": "packages/one/src/%C3%A4%20b%25%23%3F.py", "uriBaseId": "%SRCROOT%"},
        {"uri": "packages/one/a%3Ab.py", "uriBaseId": "%SRCROOT%"},
        {"uri": "packages/one/%FF.py", "uriBaseId": "%SRCROOT%"},
        {"uri": "file:///x%20y.py"},
    ]
    assert run["originalUriBaseIds"]["%SRCROOT%"]["uri"] == f"{tmp_path.as_uri()}/"
    assert run["columnKind"] == "unicodeCodePoints"


def test_what_went_wrong_is_told() -> None:
    (run,) = log(report(notices=("a notice",), errors=("a.py: internal error",)))["runs"]
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is False
    told = [(one["level"], one["message"]["text"]) for one in invocation["toolExecutionNotifications"]]
    assert told == [("error", "a.py: internal error"), ("warning", "a notice")]
    assert log(report())["runs"][0]["invocations"] == [{"executionSuccessful": True}]


def test_a_message_has_no_links_by_accident() -> None:
    (found,) = results(replace(loader(), message="`losses[i](x)` and `a[0]`", fix=None))
    assert found["message"]["text"] == r"`losses\[i](x)` and `a[0]`"


# From the tests of GitHub's action that uploads logs (see schemas/README.md).
ENDS = ["e9496ae3ebfced30:1", "fb7c023a8b9ccb3f:1", "ce8ba1a563dcdaca:1", "e20e36e16fcb0cc8:1", "b3edc88f2938467e:1"]
ENDS += ["c8e28b0b4002a3a0:1", "c129715d7a2bc9a3:1"]
LOREM = [*(f"a7f2ff13bc495cf2:{number}" for number in range(1, 7)), "a7f2ff1481e87703:1", "a9cf91f7bbf1862b:1"]
LOREM += ["55ec222b86bcae53:1", "cc97dc7b1d7d8f7b:1", "c129715d7a2bc9a3:1"]


@pytest.mark.parametrize(
    ("text", "hashes"),
    [
        ("", ["c129715d7a2bc9a3:1"]),
        (" a\nb\n  \t\tc\n d", ["271789c17abda88f:1", "54703d4cd895b18:1", "180aee12dab6264:1", "a23a3dc5e078b07b:1"]),
        (" hello; \t\nworld!!!\n\n\n  \t\tGreetings\n End\n", ENDS),
        (" hello; \t\nworld!!!\r\r\r  \t\tGreetings\r End\r", ENDS),
        (" hello; \t\r\nworld!!!\r\n\r\n\r\n  \t\tGreetings\r\n End\r\n", ENDS),
        ("Lorem ipsum dolor sit amet.\n" * 10, LOREM),
    ],
)
def test_lines_have_github_s_hashes(text: str, hashes: list[str]) -> None:
    assert line_hashes(re.split("\r\n|\r|\n", text)) == hashes


@pytest.mark.parametrize("text", ["x = 1\ny = 2", "x = 1\ny = 2\n", "x = 1\r\ny = 2\r\n"])
def test_the_hash_of_a_result_minds_the_end_of_the_file(tmp_path: Path, text: str) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(text.encode())
    finding = replace(loader(), filename=file, span=span(2, 1, 2, 6))
    found = RunReport((finding,), 1, 0, (), sources=lambda path: ["x = 1", "y = 2"])
    (result,) = log(found)["runs"][0]["results"]
    expected = line_hashes(re.split("\r\n|\r|\n", text))[1]
    assert result["partialFingerprints"]["primaryLocationLineHash"] == expected
