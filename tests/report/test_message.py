"""Each format shows the same message, or the parts of it that it has room for."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace

import pytest

from torchmemlint.amounts import Amount
from torchmemlint.doubts import Confidence, Doubt
from torchmemlint.engine.run import RunReport
from torchmemlint.findings import Finding
from torchmemlint.measured import Measured, Verdict
from torchmemlint.report.formats import FORMATS
from torchmemlint.report.message import Basis, message_of

from .samples import accumulation, evaluation, loader, render, report

MEASURED = Measured(Verdict.CONFIRMED, "cuda", "NVIDIA L4", "2.13.0", "2026-11-21", "a.py", per_step=48 * 2**20)
FINDING = replace(accumulation(), doubts=(Doubt.GIVEN,), measured=MEASURED)
WHOLE = {"full", "github", "azure", "junit", "html", "json", "json-lines", "json-report", "sarif"}  # show all parts
LINKED = {"markdown", "rdjson"}  # have room for the page, too


def test_the_parts() -> None:
    message = message_of(FINDING)
    assert message.what == FINDING.message
    assert message.why == FINDING.why
    assert message.cost is not None
    assert message.cost.line == "measured: +48.0 MiB per step (cuda NVIDIA L4, 2026-11-21)"
    assert message.confidence is Confidence.LIKELY
    assert message.url == "https://torchmemlint.readthedocs.io/rules/TML101/"
    assert [note.line for note in message.notes()] == [
        f"likely: {Doubt.GIVEN.value}",
        f"why: {FINDING.why}",
        "measured: +48.0 MiB per step (cuda NVIDIA L4, 2026-11-21)",
        "fix (safe): detach `loss`",
        f"learn more: {message.url}",
    ]


def test_what_was_measured_goes_before_what_is_estimated() -> None:
    sized = replace(FINDING, measured=None, amount=Amount(48 * 2**20, "batch of 32"))
    cost = message_of(sized).cost
    assert cost is not None
    assert (cost.basis, cost.text) == (Basis.ESTIMATED, "about 48 MiB for each batch of 32")
    both = message_of(replace(sized, measured=MEASURED)).cost
    assert both is not None
    assert both.basis is Basis.MEASURED
    assert message_of(accumulation()).cost is None


def test_what_only_a_person_can_do_is_help() -> None:
    assert [note.line for note in message_of(loader()).notes(url=False)] == ["help: pass `num_workers=`"]


def plain(text: str) -> str:
    """Text without what formats put around it."""
    text = html.unescape(text).replace("%AZP25", "%").replace("%0A", "\n").replace("\\", "")
    return " ".join(re.sub(r"</?[a-z][^>]*>", "", text).replace("`", "").split())


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_says_what_is_found_how_sure_that_is_and_what_it_costs(name: str) -> None:
    if name == "html":
        pytest.importorskip("jinja2")
    shown = render(report(FINDING), name)
    text = plain(shown)
    message = message_of(FINDING)
    assert message.cost is not None
    parts = [message.what, message.doubted, message.cost.brief]
    if name in WHOLE:
        assert message.fix is not None
        parts += [message.why, message.cost.text, message.fix.text]
    if name in WHOLE | LINKED:
        assert message.url in shown
    for part in parts:
        assert plain(part) in text, part


def test_sarif_has_the_parts_as_properties() -> None:
    (result,) = json.loads(render(report(FINDING), "sarif"))["runs"][0]["results"]
    parts = ("what", "why", "cost", "fix", "confidence", "url")
    message = message_of(FINDING)
    assert message.cost is not None
    assert [result["properties"][part] for part in parts] == [
        message.what,
        message.why,
        message.cost.line,
        "detach `loss`",
        "likely",
        message.url,
    ]


def test_the_page_begins_with_errors(everything: RunReport) -> None:
    pytest.importorskip("jinja2")
    page = render(everything, "html")
    assert re.findall(r'data-severity="(\w+)"', page) == ["error", "warning", "advice"]
    assert [finding.severity.value for finding in everything.findings] == ["warning", "advice", "error"]


@pytest.mark.parametrize(("finding", "shown"), [(FINDING, "+48.0 MiB per step (measured)"), (evaluation(), None)])
def test_a_lens_shows_the_cost(finding: Finding, shown: str | None) -> None:
    lsp = pytest.importorskip("lsprotocol.types")
    pytest.importorskip("pygls")
    from torchmemlint.server.pages import lenses

    where = lsp.Range(lsp.Position(8, 8), lsp.Position(8, 21))
    found = lenses([(finding, where)])
    assert [(one.command.title, one.command.arguments, one.range) for one in found] == (
        [(shown, ["TML101"], where)] if shown else []
    )
