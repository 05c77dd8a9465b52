"""What could not be determined, in every format; of a certain finding, nothing."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from torchmemlint.doubts import Doubt
from torchmemlint.engine.run import RunReport
from torchmemlint.findings import Finding
from torchmemlint.report.formats import FORMATS

from .readers import READERS
from .samples import ROOT, accumulation, evaluation, loader, render, report
from .test_json import SCHEMA
from .test_sarif import validate as validate_sarif
from .test_services import assert_valid as validate_junit
from .test_services import closed, schema

LIKELY = replace(accumulation(), doubts=(Doubt.GIVEN,))
POSSIBLE = replace(evaluation(), doubts=(Doubt.NETWORK_BY_USE, Doubt.MODE))
ONE = "the result is handed to code that was not seen"
TWO = f"{Doubt.NETWORK_BY_USE.value}; {Doubt.MODE.value}"


@pytest.fixture
def doubted() -> RunReport:
    return report(LIKELY, POSSIBLE, loader(), show_summary=False)


def plain(text: str, name: str) -> str:
    """The report's text as a reader sees it."""
    if name == "github":
        return text.replace("%0A", "\n")
    return re.sub("<.*?>", "", text) if name == "html" else text


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_tells_it(doubted: RunReport, name: str) -> None:
    text = plain(render(doubted, name), name)
    assert ONE in text
    for doubt in POSSIBLE.doubts:
        assert doubt.value in text
    assert "likely" in text.lower()
    assert "possible" in text.lower()
    assert len(READERS[name](render(doubted, name), ROOT)) == 3


@pytest.mark.parametrize("name", sorted(set(FORMATS) - {"json", "json-lines", "json-report", "sarif"}))
def test_of_what_is_certain_nothing_is_told(name: str) -> None:
    text = plain(render(report(accumulation(), evaluation(), loader(), show_summary=False), name), name).lower()
    text = text.partition("</style>")[2] or text
    assert not any(word in text for word in ("certain", "likely", "possible:"))


def test_in_full_it_stands_before_the_reason(doubted: RunReport) -> None:
    lines = [line.strip() for line in render(doubted, "full").splitlines()]
    assert lines[lines.index(f"= likely: {ONE}") + 1].startswith("= why: ")
    assert lines[lines.index(f"= possible: {TWO}") + 1].startswith("= why: ")


@pytest.mark.parametrize("name", ["concise", "grouped", "pylint"])
def test_on_a_line_it_stands_behind_the_message(doubted: RunReport, name: str) -> None:
    lines = render(doubted, name).splitlines()
    (line,) = (line for line in lines if "TML101" in line)
    assert line.endswith(f"from one iteration to the next (likely: {ONE}) (see src/meter.py:3)")
    (line,) = (line for line in lines if "TML201" in line)
    assert line.endswith(f"evaluation runs with gradients on (possible: {TWO})")


def test_what_is_folded_tells_it_too() -> None:
    repeated = report(*6 * [LIKELY], folds=True)
    assert render(repeated, "full").count(f"(likely: {ONE})") == 3


@pytest.mark.parametrize(
    ("finding", "confidence", "doubts"),
    [
        (accumulation(), "certain", []),
        (LIKELY, "likely", [{"name": "given", "message": ONE}]),
        (
            POSSIBLE,
            "possible",
            [
                {"name": "network-by-use", "message": Doubt.NETWORK_BY_USE.value},
                {"name": "mode", "message": Doubt.MODE.value},
            ],
        ),
    ],
)
def test_json_and_sarif_have_fields_for_it(finding: Finding, confidence: str, doubts: list[dict[str, str]]) -> None:
    (found,) = json.loads(render(report(finding), "json"))
    assert (found["confidence"], found["doubts"]) == (confidence, doubts)
    assert json.loads(render(report(finding), "json-lines")) == found
    (result,) = json.loads(render(report(finding), "sarif"))["runs"][0]["results"]
    assert result["properties"]["confidence"] == confidence
    assert result["properties"]["doubts"] == doubts


def test_sarif_ranks_by_it() -> None:
    findings = (accumulation(), LIKELY, POSSIBLE)
    results = json.loads(render(report(*findings), "sarif"))["runs"][0]["results"]
    assert [result["rank"] for result in results] == [100.0, 75.0, 25.0]
    messages = [result["message"]["text"] for result in results]
    assert messages[0] == accumulation().message
    assert messages[1] == f"{accumulation().message}. Likely: {ONE}."


def test_documents_keep_to_their_schemas(doubted: RunReport) -> None:
    jsonschema.validate(json.loads(render(doubted, "json-report")), SCHEMA, jsonschema.Draft202012Validator)
    validate_sarif(json.loads(render(doubted, "sarif")))
    validate_junit(render(doubted, "junit"))
    jsonschema.Draft4Validator(closed(schema("rdjson.json"))).validate(json.loads(render(doubted, "rdjson")))
    for issue in json.loads(render(doubted, "gitlab")):
        jsonschema.Draft202012Validator(schema("gitlab-code-quality.json")).validate(issue)


def test_services_show_it(doubted: RunReport) -> None:
    assert f"\nlikely: {ONE}\n" in plain(render(doubted, "github"), "github")
    assert json.loads(render(doubted, "gitlab"))[0]["description"].endswith(f"(likely: {ONE}) (see src/meter.py:3)")
    assert json.loads(render(doubted, "rdjson"))["diagnostics"][0]["message"].endswith(f"(likely: {ONE})")
    assert f"\nlikely: {ONE}\nwhy: " in render(doubted, "junit")


def test_a_fingerprint_of_a_service_does_not_depend_on_it() -> None:
    def fingerprints(finding: Finding) -> tuple[object, object]:
        found = report(finding)
        (result,) = json.loads(render(found, "sarif"))["runs"][0]["results"]
        return json.loads(render(found, "gitlab"))[0]["fingerprint"], result["partialFingerprints"]

    assert fingerprints(accumulation()) == fingerprints(LIKELY)


def test_the_page_has_a_label(doubted: RunReport) -> None:
    pytest.importorskip("jinja2")
    page = render(doubted, "html")
    assert page.count('<span class="label">likely</span>') == 1
    assert page.count('<span class="label">possible</span>') == 1
    assert f"<b>Likely</b>: {ONE}" in page


def test_the_markdown_says_what_is_not_shown() -> None:
    assert "2 less certain findings are not shown" in render(report(loader(), unsure=2), "markdown")
    assert "not shown" not in render(report(loader()), "markdown")


def test_flake8_shows_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from torchmemlint import flake8_plugin
    from torchmemlint.engine import one_file

    monkeypatch.setattr(one_file, "check_source", lambda *_, **__: [accumulation(), LIKELY])
    monkeypatch.setattr(one_file, "is_relevant", lambda *_: True)
    plugin = flake8_plugin.Plugin(None, str(tmp_path / "a.py"), ["import torch\n"])  # type: ignore[arg-type]
    assert [text for _, _, text, _ in plugin.run()] == [
        f"TML101 {accumulation().message}",
        f"TML101 {accumulation().message} (likely: {ONE})",
    ]


def test_an_editor_shows_it() -> None:
    lsp = pytest.importorskip("lsprotocol.types")
    pytest.importorskip("pygls")
    from torchmemlint.server.diagnostics import Presenter

    presenter = Presenter("utf-16", lambda path: "import torch\n" * 20, lsp.ClientCapabilities())
    sure, likely = presenter.of_file([accumulation(), LIKELY], accumulation().filename)
    assert sure.message == accumulation().message
    assert likely.message == f"{accumulation().message}\nlikely: {ONE}"
    assert (sure.data["confidence"], sure.data["doubts"]) == ("certain", [])
    assert likely.data["confidence"] == "likely"
    assert likely.data["doubts"] == [{"name": "given", "message": ONE}]
