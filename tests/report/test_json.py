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

from torchmemlint.engine.run import RunReport
from torchmemlint.measured import Measured, Verdict
from torchmemlint.rules.registry import all_rules

from .samples import ROOT, accumulation, render, report

SCHEMA = json.loads((files("torchmemlint.report") / "schema.json").read_text(encoding="utf-8"))


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
    jsonschema.validate(json.loads(render(everything, "json")), SCHEMA, jsonschema.Draft202012Validator)
    jsonschema.validate(json.loads(render(report(), "json")), SCHEMA, jsonschema.Draft202012Validator)


def test_each_json_line_is_an_object_of_the_list(everything: RunReport) -> None:
    lines = render(everything, "json-lines").splitlines()
    assert [json.loads(line) for line in lines] == json.loads(render(everything, "json"))
    of_one = {**SCHEMA, "type": "object", "$ref": "#/$defs/finding"}
    for line in lines:
        jsonschema.validate(json.loads(line), of_one, jsonschema.Draft202012Validator)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**json.loads(lines[0]), "surprise": 1}, of_one)
    assert render(report(), "json-lines") == ""


@pytest.mark.parametrize(
    "spoilt",
    [
        {"code": 101},
        {"severity": "fatal"},
        {"location": {"row": 0, "column": 1}},
        {"fix": {"message": "m", "applicability": "maybe", "edits": []}},
        {"confidence": "sure"},
        {"doubts": [{"name": "given"}]},
        {"surprise": 1},
    ],
)
def test_schema_refuses_what_is_wrong(everything: RunReport, spoilt: dict[str, Any]) -> None:
    first = json.loads(render(everything, "json"))[0]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate([{**first, **spoilt}], SCHEMA)


def test_every_rule_s_code_and_name_keep_to_the_schema() -> None:
    properties = SCHEMA["$defs"]["finding"]["properties"]
    for rule in all_rules():
        jsonschema.validate(rule.code, properties["code"])
        jsonschema.validate(rule.name, properties["name"])


def test_values() -> None:
    (found,) = json.loads(render(report(accumulation()), "json"))
    assert found == {
        "cell": None,
        "code": "TML101",
        "name": "graph-accumulation",
        "severity": "error",
        "confidence": "certain",
        "doubts": [],
        "message": accumulation().message,
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
    (plain,) = json.loads(render(report(accumulation()), "json"))
    (found,) = json.loads(render(report(replace(accumulation(), measured=told)), "json"))
    assert found == {**plain, "measured": told.to_json()}
    jsonschema.validate([found], SCHEMA, jsonschema.Draft202012Validator)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate([{**found, "measured": {**found["measured"], "peak": "much"}}], SCHEMA)


def test_ruff_s_own_output_has_no_field_that_ours_lacks_and_the_same_kinds_of_values(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import os\n")
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--output-format", "json", "a.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    theirs = next(one for one in json.loads(done.stdout) if one["fix"])
    (ours,) = json.loads(render(report(accumulation()), "json"))
    assert set(theirs) <= set(ours)
    assert shape({key: ours[key] for key in theirs}) == shape(theirs)


def test_statistics() -> None:
    both = report(accumulation(), accumulation())
    assert json.loads(render(both, "json", statistics=True)) == [
        {"code": "TML101", "name": "graph-accumulation", "severity": "error", "count": 2, "fixable": 2}
    ]
