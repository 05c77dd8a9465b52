"""Charts of what patterns cost, with and without them, from docs/impact.json: six for the README, all for its page."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchmemlint.runtime.experiments.outcome import Outcome

ROOT = Path(__file__).resolve().parent.parent
_TOLD = {  # the experiment's title, and what the chart calls it
    "a loss summed without backward": "a loss added to a total before any backward (TML101)",
    "a recurrent state carried on": "a hidden state that is never detached (TML104)",
    "a hook that stores outputs": "a hook that stores outputs (TML106)",
    "evaluation with gradients on": "evaluation without no_grad (TML201)",
    "a graph retained without need": "retain_graph that nobody needs (TML105)",
    "attention computed in steps": "attention written out (TML304)",
}
NOTICEABLE = 0.05  # the share that must be saved to be shown
_WIDTH, _ROW, _LEFT, _FULL = 760, 46, 14, 560
_STYLE = """.page { fill: #fff }
text { font: 13px system-ui, sans-serif; fill: #1f2328 } .small { font-size: 11px; fill: #59636e }
.bad { fill: #cf222e } .good { fill: #1a7f37 }
@media (prefers-color-scheme: dark) {
.page { fill: #0d1117 }
text { fill: #f0f6fc } .small { fill: #9198a1 } .bad { fill: #f85149 } .good { fill: #3fb950 } }"""


def chart() -> str:
    """Six patterns on the simulated card, as SVG."""
    kept = _kept()
    run = kept.get("simulated") or kept["cpu"]
    known = {outcome.title: outcome for outcome in _outcomes(run)}
    return _drawn("What six patterns cost", [(words, known[title]) for title, words in _TOLD.items()], run)


def chart_of(effect: str) -> str:
    """Every pattern that showed in a figure ("growth" or "peak") on a GPU, the most wasteful first, as SVG."""
    run = _kept()["cuda"]
    told = [one for one in _outcomes(run) if one.effect.value == effect and _share(one) <= 1 - NOTICEABLE]
    told.sort(key=_share)
    what = {"growth": "What grows with each step", "peak": "What is higher at the peak"}[effect]
    return _drawn(what, [(f"{one.title} ({one.code})", one) for one in told], run)


def _kept() -> dict[str, Any]:
    kept: dict[str, Any] = json.loads((ROOT / "docs" / "impact.json").read_text(encoding="utf-8"))
    return kept


def _outcomes(run: dict[str, Any]) -> list[Outcome]:
    from torchmemlint.runtime.experiments.outcome import Outcome

    return [Outcome.from_json(one) for one in run["outcomes"]]


def _share(outcome: Outcome) -> float:
    """What is left without the pattern, of what there was with it."""
    bad, good, _ = figures(outcome)
    return good / bad if bad else 1.0


def _drawn(title: str, told: list[tuple[str, Outcome]], run: dict[str, Any]) -> str:
    """A chart with two bars for each outcome."""
    where = f"{run['backend']}, torch {run['torch']}, {run['date']}"
    height = 60 + _ROW * len(told)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        f'role="img" aria-label="{escape(title)}, with and without them">',
        f"<style>{_STYLE}</style>",
        f'<rect class="page" width="{_WIDTH}" height="{height}" rx="6"/>',  # whatever the page around it is like
    ]
    for number, (words, outcome) in enumerate(told):
        parts += _row(20 + number * _ROW, words, outcome)
    for line, note in enumerate(("Small programs, with the pattern (red) and without it (green).", where)):
        parts.append(f'<text class="small" x="{_LEFT}" y="{height - 28 + 15 * line}">{escape(note)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def figures(outcome: Outcome) -> tuple[float, float, str]:
    """Bytes with the pattern and without it, and what they are."""
    if outcome.effect.value == "growth":
        return outcome.bad.growth_per_step, outcome.good.growth_per_step, "more with each step"
    return outcome.bad.peak, outcome.good.peak, "at the peak"


def _row(top: int, words: str, outcome: Outcome) -> list[str]:
    """Two bars, the first as long as in every row: so they show the share that is left without the pattern."""
    from torchmemlint.sizes import format_size

    bad, good, what = figures(outcome)
    parts = [f'<text x="{_LEFT}" y="{top}">{escape(words)}, {what}</text>']
    for line, (kind, nbytes) in enumerate((("bad", bad), ("good", good))):
        width = max(2, round(_FULL * nbytes / bad))
        y = top + 6 + line * 13
        parts.append(f'<rect class="{kind}" x="{_LEFT}" y="{y}" width="{width}" height="10" rx="2"/>')
        parts.append(f'<text class="small" x="{_LEFT + width + 6}" y="{y + 9}">{format_size(nbytes)}</text>')
    return parts
