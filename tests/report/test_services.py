"""What services and reviewers read: GitHub's annotations, GitLab's code quality, JUnit, rdjson, Pylint's lines."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import junitparser
import pytest
from lxml import etree

from torchmemlint.engine.run import RunReport
from torchmemlint.findings import Applicability, Edit, Evidence, Finding, Fix
from torchmemlint.fixes.edits import apply_edits
from torchmemlint.measured import Measured, Verdict
from torchmemlint.report.formats import FORMATS
from torchmemlint.report.paint import Paint

from .consumers import needs_packages, node
from .readers import annotation
from .samples import ROOT, TRAIN, accumulation, evaluation, loader, render, report, span

SCHEMAS = Path(__file__).parent / "schemas"
TOLD = Measured(Verdict.CONFIRMED, "simulated", "A100 40GB", "2.13.0", "2026-11-21", "train.py", 50331648.0, 0, 0)
NASTY = "100%, a: b\r\nnext\tline ::error:: %0A; ]]> <b> é精"


def schema(name: str) -> Any:
    return json.loads((SCHEMAS / name).read_text(encoding="utf-8"))


def nasty(finding: Finding) -> Finding:
    chain = (*finding.evidence, Evidence(NASTY, span(1, 1, 1, 2)))
    return replace(finding, message=NASTY, evidence=chain, filename=ROOT / "a b,c:d%é.py", measured=TOLD)


# --- GitHub


def test_annotations() -> None:
    lines = render(report(accumulation(), evaluation(), loader()), "github").splitlines()
    first, second, third = map(annotation, lines)
    assert first.command == "error"
    assert first.properties == {
        "file": "src/train.py",
        "line": "9",
        "endLine": "9",
        "col": "9",
        "endColumn": "22",
        "title": "TML101 graph-accumulation",
    }
    assert first.data.splitlines()[0] == accumulation().message
    assert "src/meter.py:3: `meter` keeps its argument" in first.data.splitlines()
    assert (second.command, "col" in second.properties) == ("warning", False)
    assert third.command == "notice"


def test_annotations_name_files_of_the_repository(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    root = tmp_path / "packages" / "one"
    found = report(replace(loader(), filename=root / "src" / "a.py"), replace(loader(), filename=tmp_path / "b.py"))
    lines = FORMATS["github"].lines(found, root, Paint(False))
    assert [annotation(line).properties["file"] for line in lines] == ["packages/one/src/a.py", "b.py"]


TOOLKIT = """
import { text } from 'node:stream/consumers';
import { issueCommand } from './node_modules/@actions/core/lib/command.js';
for (const [name, properties, data] of JSON.parse(await text(process.stdin))) issueCommand(name, properties, data);
"""


@needs_packages
def test_annotations_are_what_github_s_own_toolkit_would_write() -> None:
    text = render(report(accumulation(), evaluation(), loader(), nasty(accumulation()), nasty(evaluation())), "github")
    assert text.count("\n") == 5
    assert "%25" in text
    read = [list(annotation(line)) for line in text.split("\n")[:-1]]
    assert read[3][1]["file"] == "a b,c:d%é.py"
    assert node(TOOLKIT, text=json.dumps(read)) == text


# --- Azure Pipelines


def test_logging_commands() -> None:
    first, second, third = render(report(accumulation(), evaluation(), loader()), "azure").splitlines()
    assert first.startswith(
        "##vso[task.logissue type=error;sourcepath=src/train.py;linenumber=9;columnnumber=9;code=TML101;]"
        f"graph-accumulation: {accumulation().message}%0A"
    )
    assert "%0Asrc/meter.py:3: `meter` keeps its argument" in first
    assert second.startswith("##vso[task.logissue type=warning;")
    assert "]advice: " in third
    assert render(report(), "azure") == ""


AZURE = """
import { text } from 'node:stream/consumers';
import { commandFromString } from './node_modules/azure-pipelines-task-lib/taskcommand.js';
const read = (await text(process.stdin)).split('\\n').slice(0, -1).map(commandFromString);
process.stdout.write(JSON.stringify(read.map((one) => [one.command, one.properties, one.message, one.toString()])));
"""


@needs_packages
def test_commands_are_what_microsoft_s_own_library_reads_and_writes() -> None:
    found = [accumulation(), evaluation(), loader(), nasty(accumulation()), nasty(evaluation())]
    text = render(report(*found), "azure")
    read = json.loads(node(AZURE, text=text))
    assert [one[3] for one in read] == text.splitlines()
    assert {one[0] for one in read} == {"task.logissue"}
    assert read[3][1]["sourcepath"] == "a b,c:d%é.py"
    assert {one[1]["type"] for one in read} <= {"error", "warning"}  # all that Azure knows
    for finding, (_, properties, message, _) in zip(found, read, strict=True):
        assert (properties["code"], properties["linenumber"]) == (finding.code, str(finding.span.start.row))
        assert f"{finding.name}: " in message
    assert "100%, a: b next line ::error:: %0A; ]]> <b> é精" in read[3][2]


# --- GitLab


def test_code_quality() -> None:
    found = json.loads(render(report(nasty(accumulation()), evaluation(), loader()), "gitlab"))
    for one in found:
        jsonschema.Draft202012Validator(schema("gitlab-code-quality.json")).validate(one)
        assert one["severity"] in ("info", "minor", "major", "critical", "blocker")  # GitLab's `SEVERITY_PRIORITIES`
        assert isinstance(one["location"]["lines"]["begin"], int)
        assert not one["location"]["path"].startswith(("/", "./"))
    assert [one["severity"] for one in found] == ["major", "minor", "info"]
    assert found[0]["description"].endswith("(measured: +48.0 MiB per step, simulated) (see src/meter.py:3)")
    assert json.loads(render(report(), "gitlab")) == []


def test_the_schema_of_code_quality_refuses_what_is_wrong() -> None:
    (found,) = json.loads(render(report(loader()), "gitlab"))
    for spoilt in ({"severity": 3}, {"location": {"lines": {"begin": "7"}}}, {"fingerprint": None}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**found, **spoilt}, schema("gitlab-code-quality.json"))


def test_fingerprints_are_all_different_and_do_not_depend_on_rows() -> None:
    """GitLab shows one of those that share a fingerprint: two files of one name share ours, and so do those without."""
    elsewhere = replace(accumulation(), filename=ROOT / "other/train.py")
    without = replace(accumulation(), fingerprint="")
    many = report(accumulation(), elsewhere, without, without)
    first = [one["fingerprint"] for one in json.loads(render(many, "gitlab"))]
    assert len(set(first)) == 4
    moved = replace(accumulation(), span=span(19, 9, 19, 22))
    again = [one["fingerprint"] for one in json.loads(render(report(elsewhere, moved), "gitlab"))]
    assert again == [first[1], first[0]]


# --- JUnit


def assert_valid(text: str) -> None:
    etree.XMLSchema(etree.parse(SCHEMAS / "junit-10.xsd")).assertValid(etree.fromstring(text.encode("ascii")))


def test_junit_keeps_to_jenkins_s_schema(everything: RunReport) -> None:
    odd = nasty(replace(accumulation(), code="TML000", name="unreadable-file"))
    assert_valid(render(replace(everything, findings=(*everything.findings, odd), errors=("a.py: it broke",)), "junit"))
    assert_valid(render(report(), "junit"))
    with pytest.raises(etree.DocumentInvalid):
        assert_valid(render(everything, "junit").replace('tests="', 'count="'))


def test_junit_as_a_service_reads_it() -> None:
    unreadable = replace(loader(), code="TML000", name="unreadable-file", message="no permission")
    found = report(accumulation(), loader(), evaluation(), unreadable, errors=("a.py: it broke",))
    document = junitparser.JUnitXml.fromstring(render(found, "junit").encode())
    assert (document.tests, document.failures, document.errors) == (5, 2, 2)
    cases = [case for suite in document for case in suite]
    kinds = ["failure" if c.is_failure else "error" if c.is_error else "skipped" if c.is_skipped else "" for c in cases]
    assert kinds == ["failure", "skipped", "failure", "error", "error"]
    assert (cases[0].classname, cases[0].name) == ("src.train", "TML101 graph-accumulation (9:9)")
    (outcome,) = cases[0].result
    assert outcome.message == accumulation().message
    assert "\n  src/meter.py:3: `meter` keeps its argument\n" in outcome.text
    assert "\nwhy: Every activation" in outcome.text


def test_what_fails_a_run_is_a_failure_and_nothing_else_is() -> None:
    """As `--fail-on advice` has it, and `--fail-on error`."""
    for threshold, failures in ((0, 3), (1, 2), (2, 1)):
        found = report(
            accumulation(), evaluation(), loader(), fails=lambda one, least=threshold: one.severity.rank >= least
        )
        assert junitparser.JUnitXml.fromstring(render(found, "junit").encode()).failures == failures


def test_junit_of_nothing_is_a_test_that_passes() -> None:
    (suite,) = junitparser.JUnitXml.fromstring(render(report(), "junit").encode())
    (case,) = suite
    assert case.is_passed


# --- rdjson


def closed(definition: Any) -> Any:
    """The schema, but that it refuses unknown keys, as reviewdog does, which reads by protocol buffers."""
    if isinstance(definition, dict):
        shut = {key: closed(value) for key, value in definition.items()}
        return {**shut, "additionalProperties": False} if "properties" in shut else shut
    return [closed(one) for one in definition] if isinstance(definition, list) else definition


def diagnostics(found: RunReport) -> Any:
    document = json.loads(render(found, "rdjson"))
    jsonschema.Draft4Validator(closed(schema("rdjson.json"))).validate(document)
    return document["diagnostics"]


def test_rdjson_keeps_to_the_schema(everything: RunReport) -> None:
    found = diagnostics(replace(everything, findings=(*everything.findings, nasty(evaluation())), unsafe_fixes=True))
    assert [one["severity"] for one in found] == ["WARNING", "INFO", "ERROR", "WARNING"]
    assert diagnostics(report()) == []
    document = json.loads(render(everything, "rdjson"))
    document["diagnostics"][0]["kind"] = "x"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft4Validator(closed(schema("rdjson.json"))).validate(document)


def test_its_columns_are_bytes() -> None:
    (found,) = diagnostics(report(evaluation()))
    before = '\tdaten = "精度"; hits = s'
    assert evaluation().span.start.column == len(before) + 1
    assert found["location"]["range"]["start"] == {"line": 3, "column": len(before.encode()) + 1}


def suggestion_of(*edits: Edit, applicability: Applicability = Applicability.SAFE, unsafe: bool = False) -> Any:
    finding = replace(accumulation(), fix=Fix("mend", applicability, edits))
    (found,) = diagnostics(report(finding, unsafe_fixes=unsafe))
    return found.get("suggestions")


def suggested(suggestions: Any) -> str:
    """The file as reviewdog would have it: one suggestion replaces one range."""
    (suggestion,) = suggestions
    rows = TRAIN.encode().split(b"\n")
    start, end = suggestion["range"]["start"], suggestion["range"]["end"]
    first, last = start["line"] - 1, end["line"] - 1
    head, tail = rows[first][: start["column"] - 1], rows[last][end["column"] - 1 :]
    rows[first : last + 1] = (head + suggestion["text"].encode() + tail).split(b"\n")
    return b"\n".join(rows).decode()


def test_a_fix_of_several_parts_is_one_suggestion() -> None:
    one = Edit(span(9, 22, 9, 22), ".detach()")
    other = Edit(span(5, 13, 5, 16), "torch.zeros(())")
    assert suggested(suggestion_of(one)) == apply_edits(TRAIN, (one,))
    assert suggested(suggestion_of(one, other)) == apply_edits(TRAIN, (one, other))


def test_what_fix_would_not_do_is_not_suggested() -> None:
    edit = Edit(span(9, 22, 9, 22), ".detach()")
    assert suggestion_of(edit, applicability=Applicability.UNSAFE) is None
    assert suggestion_of(edit, applicability=Applicability.UNSAFE, unsafe=True) is not None
    assert suggestion_of(edit, applicability=Applicability.HINT, unsafe=True) is None
    assert suggestion_of() is None


def test_a_fix_whose_parts_are_far_from_each_other_is_not_suggested() -> None:
    source = ["import torch", *[f"x{number} = {number}" for number in range(50)]]
    far = (Edit(span(1, 1, 1, 1), "import os\n"), Edit(span(40, 1, 40, 2), "y"))
    finding = replace(accumulation(), fix=Fix("mend", Applicability.SAFE, far), evidence=(), span=span(40, 1, 40, 2))
    (found,) = diagnostics(replace(report(finding), sources=lambda path: source))
    assert "suggestions" not in found


# --- Pylint


def test_pylint_names_the_function() -> None:
    source = "class A:\n    def f(self):\n        def g():\n            x\n        y\n    z\nw".split("\n")
    findings = [replace(loader(), span=span(row, 1, row, 2)) for row in (4, 5, 6, 7)]
    found = replace(report(*findings), sources=lambda path: source)
    names = [line.partition(", ")[2].partition("]")[0] for line in render(found, "pylint").splitlines()]
    assert names == ["A.f.g", "A.f", "A", ""]
    assert render(report(loader()), "pylint") == (
        "src/train.py:6: [TML401(loader-without-workers), train] batches are made in the training process\n"
    )


def test_pylint_of_a_file_that_does_not_parse() -> None:
    broken = replace(report(loader()), sources=lambda path: ["def f(:"])
    assert "[TML401(loader-without-workers), ] " in render(broken, "pylint")
