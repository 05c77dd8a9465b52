"""TML508: its fix is unsafe, so that the fixtures' own tests do not apply it."""

from __future__ import annotations

from pathlib import Path

from torchmemlint.config.formatting import formatting
from torchmemlint.engine.checking import check_text
from torchmemlint.findings import Finding
from torchmemlint.fixes.apply import fix_text

FIXTURE = Path(__file__).parents[2] / "fixtures" / "TML508-results-collected-on-device" / "bad_predictions.py"
FIXED = (
    "append(features.cpu())",
    'append(torch.softmax(model(batch["x"]), dim=-1).cpu())',
    "append(accelerator.gather_for_metrics(first).cpu())",
    "append(output.detach().cpu())",
)


def _check(text: str) -> list[Finding]:
    return check_text(text, FIXTURE, frozenset({"TML508"}))


def test_each_result_is_brought_to_the_host_when_unsafe_fixes_are_asked_for() -> None:
    text = FIXTURE.read_text()
    findings = _check(text)
    assert not fix_text(text, findings, _check, unsafe=False).applied

    result = fix_text(text, findings, _check, unsafe=True, formatting=formatting(FIXTURE.parent))

    assert all(fixed in result.text and fixed not in text for fixed in FIXED)
    assert len(result.applied) == len(FIXED)
    assert _check(result.text) == []


def test_evidence_tells_what_moves_the_batches_and_where_the_results_go() -> None:
    found = next(finding for finding in _check(FIXTURE.read_text()) if "`embeddings.append(" in finding.message)

    lines = FIXTURE.read_text().splitlines()
    assert [lines[link.span.start.row - 1].strip() for link in found.evidence] == [
        "inputs = inputs.to(device)",
        "embeddings.append(features)  # expect: TML508 possible",
        "return embeddings.cpu().numpy(), torch.cat(labels)",
    ]
