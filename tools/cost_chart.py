"""The chart of the README: what six patterns cost, with and without them, from docs/impact.json."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchmemlint.runtime.experiments.outcome import Outcome

ROOT = Path(__file__).resolve().parent.parent
_TOLD = {  # the experiment's title, and what the chart calls it
    "a loss summed without backward": "a loss added to a total before any backward (TML101)",
    "a recurrent state carried on": "a hidden state that is never detached (TML104)",
    "a hook that stores outputs": "a hook that stores outputs (TML106)",
    "evaluation with gradients on": "evaluation without no_grad (TML201)",
    "a graph retained for nobody": "retain_graph that nobody needs (TML105)",
    "attention written out": "attention written out (TML304)",
}
_WIDTH, _ROW, _LEFT, _FULL = 760, 46, 14, 560
_STYLE = """text { font: 13px system-ui, sans-serif; fill: #1f2328 } .small { font-size: 11px; fill: #59636e }
.bad { fill: #cf222e } .good { fill: #1a7f37 }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc } .small { fill: #9198a1 } .bad { fill: #f85149 } .good { fill: #3fb950 } }"""


def chart() -> str:
    """The chart as SVG."""
    from torchmemlint.runtime.experiments.outcome import Outcome

    kept = json.loads((ROOT / "docs" / "impact.json").read_text(encoding="utf-8"))
    run = kept.get("simulated") or kept["cpu"]
    known = {outcome.title: outcome for outcome in map(Outcome.from_json, run["outcomes"])}
    told = [(words, known[title]) for title, words in _TOLD.items()]
    where = f"{run['backend']}, torch {run['torch']}, {run['date']}"
    height = 60 + _ROW * len(told)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        'role="img" aria-label="What six patterns cost, with and without them">',
        f"<style>{_STYLE}</style>",
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
