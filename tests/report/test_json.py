from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from torchmemlint import __version__
from torchmemlint.engine.run import LeftOut, RunReport
from torchmemlint.measured import Measured, Verdict
from torchmemlint.rules.registry import all_rules

from .samples import ROOT, accumulation, render, report

SCHEMA = json.loads((files("torchmemlint.report") / "schema.json").read_text(encoding="utf-8"))


def findings(found: RunReport) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = json.loads(render(found, "json-report"))["findings"]
    return listed


def shape(value: Any) -> Any:
    """What kinds of values stand where: for comparing the output of two tools."""
    match value:
        case dict():
            return {key: shape(one) for key, one in value.items()}
        case list():
            return [shape(value[0])] if value else []
        case _:
            return type(value).__name__


def test_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_output_keeps_to_the_schema(everything: RunReport) -> None:
    jsonschema.validate(json.loads(render(everything, "json-report")), SCHEMA, jsonschema.Draft202012Validator)
    jsonschema.validate(json.loads(render(report(), "json-report")), SCHEMA, jsonschema.Draft202012Validator)


def test_each_json_line_is_an_object_of_the_list(everything: RunReport) -> None:
    lines = render(everything, "json-lines").splitlines()
    assert [json.loads(line) for line in lines] == findings(everything)
    of_one = {"$ref": "#/$defs/finding", "$defs": SCHEMA["$defs"]}
    for line in lines:
        jsonschema.validate(json.loads(line), of_one, jsonschema.Draft202012Validator)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**json.loads(lines[0]), "surprise": 1}, of_one)
    assert render(report(), "json-lines") == ""


@pytest.mark.parametrize(
    "spoilt",
    [
        {"code": 101},
        {"cost": {"text": "48 MiB", "basis": "guessed"}},
        {"what": ""},
        {"severity": "fatal"},
        {"location": {"row": 0, "column": 1}},
        {"fix": {"message": "m", "applicability": "maybe", "edits": []}},
        {"confidence": "sure"},
        {"doubts": [{"name": "given"}]},
        {"surprise": 1},
    ],
)
def test_schema_refuses_what_is_wrong(everything: RunReport, spoilt: dict[str, Any]) -> None:
    whole = json.loads(render(everything, "json-report"))
    whole["findings"][0] |= spoilt
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(whole, SCHEMA)


@pytest.mark.parametrize("spoilt", [{"schema_version": 2}, {"schema_version": None}, {"summary": {}}, {"surprise": 1}])
def test_schema_refuses_another_document(everything: RunReport, spoilt: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**json.loads(render(everything, "json-report")), **spoilt}, SCHEMA)


def test_an_outside_validator_accepts_it(everything: RunReport, tmp_path: Path) -> None:
    """`check-jsonschema` knows nothing of us but the schema's file."""
    schema = Path(str(files("torchmemlint.report") / "schema.json"))
    documents = [tmp_path / name for name in ("all.json", "none.json", "counts.json")]
    documents[0].write_text(render(everything, "json-report"))
    documents[1].write_text(render(report(), "json-report"))
    documents[2].write_text(render(everything, "json-report", statistics=True))
    command = [sys.executable, "-m", "check_jsonschema", "--schemafile", schema]
    done = subprocess.run([*command, *documents], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (tmp_path / "wrong.json").write_text(render(everything, "json-report").replace('"what"', '"says"'))
    assert subprocess.run([*command, tmp_path / "wrong.json"], capture_output=True, check=False).returncode == 1


def test_every_rule_s_code_and_name_keep_to_the_schema() -> None:
    properties = SCHEMA["$defs"]["finding"]["properties"]
    for rule in all_rules():
        jsonschema.validate(rule.code, properties["code"])
        jsonschema.validate(rule.name, properties["name"])


def test_values() -> None:
    (found,) = findings(report(accumulation()))
    assert found == {
        "cell": None,
        "code": "TML101",
        "name": "graph-accumulation",
        "severity": "error",
        "confidence": "certain",
        "doubts": [],
        "message": accumulation().message,
        "what": accumulation().message,
        "why": "Every activation of every step stays on the device.",
        "cost": None,
        "filename": str(ROOT / "src/train.py"),
        "location": {"row": 9, "column": 9},
        "end_location": {"row": 9, "column": 22},
        "noqa_row": 9,
        "evidence": [
            {
                "message": one.message,
                "filename": str(one.filename or ROOT / "src/train.py"),
                "location": {"row": one.span.start.row, "column": one.span.start.column},
                "end_location": {"row": one.span.end.row, "column": one.span.end.column},
            }
            for one in accumulation().evidence
        ],
        "fix": {
            "message": "detach `loss`",
            "applicability": "safe",
            "edits": [
                {
                    "content": ".detach()",
                    "location": {"row": 9, "column": 22},
                    "end_location": {"row": 9, "column": 22},
                }
            ],
        },
        "fingerprint": "0123456789abcdef",
        "url": "https://torchmemlint.readthedocs.io/rules/TML101/",
    }


def test_a_measured_figure_is_one_more_field() -> None:
    told = Measured(Verdict.NOT_TRIED, "cuda", "NVIDIA L4", "2.13.0", "2026-11-21", "a.py", line_per_step=2048.5)
    (plain,) = findings(report(accumulation()))
    (found,) = findings(report(replace(accumulation(), measured=told)))
    cost = {"text": "+2.0 KiB per step kept (cuda NVIDIA L4, 2026-11-21)", "basis": "measured"}
    assert found == {**plain, "cost": cost, "measured": told.to_json()}
    of_one = {"$ref": "#/$defs/finding", "$defs": SCHEMA["$defs"]}
    jsonschema.validate(found, of_one, jsonschema.Draft202012Validator)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**found, "measured": {**found["measured"], "peak": "much"}}, of_one)


def test_the_list_has_the_findings_of_the_document(everything: RunReport) -> None:
    assert json.loads(render(everything, "json")) == findings(everything)
    assert json.loads(render(report(), "json")) == []


def test_a_finding_has_all_fields_of_ruff_s_with_the_same_kinds_of_values(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import os\n")
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--output-format", "json", "a.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    theirs = next(one for one in json.loads(done.stdout) if one["fix"])
    (ours,) = findings(report(accumulation()))
    assert set(theirs) <= set(ours)
    assert shape({key: ours[key] for key in theirs}) == shape(theirs)


def test_statistics() -> None:
    both = report(accumulation(), accumulation())
    told = json.loads(render(both, "json-report", statistics=True))
    assert told["summary"]["rules"] == [
        {"code": "TML101", "name": "graph-accumulation", "severity": "error", "count": 2, "fixable": 2}
    ]
    assert "findings" not in told
    assert json.loads(render(both, "json", statistics=True)) == told["summary"]["rules"]


def test_the_summary(everything: RunReport) -> None:
    told = replace(everything, failing=2, unsure=4, left_out=(LeftOut(3, "in b.json"),), errors=("a plugin failed",))
    summary = json.loads(render(told, "json-report"))["summary"]
    del summary["rules"]
    assert summary == {
        "torchmemlint": __version__,
        "files": {"checked": 3, "skipped": 1},
        "findings": {"total": 3, "error": 1, "warning": 1, "advice": 1},
        "failing": 2,
        "fixable": {"safe": 1, "unsafe": 1},
        "fixed": 0,
        "not_shown": {"less_certain": 4, "in_baseline": 3},
        "errors": ["a plugin failed"],
    }
