"""A rule's documentation page: its sections, read from the file that is its page, or from its docstring.

The documentation site, `torchmemlint rule`, the editor's hover and SARIF's help are all made from it.
"""

from __future__ import annotations

import functools
import inspect
import io
import json
import re
from pathlib import Path

from torchmemlint.codes import OWN
from torchmemlint.findings import Applicability, Severity
from torchmemlint.immutable import immutable
from torchmemlint.rules.base import Rule
from torchmemlint.rules.listed import body

SECTIONS = {
    "In short": "in_short",
    "What it does": "what_it_does",
    "Why it costs memory": "why_it_costs_memory",
    "Example": "example",
    "Use instead": "use_instead",
    "Fix safety": "fix_safety",
    "When it stays silent": "when_it_stays_silent",
    "References": "references",
}
OPTIONAL = ("In short",)  # what it costs, the fix, and when not to care
REQUIRED = ("What it does", "Why it costs memory")  # the least that a plugin's rule says
_HEADING = re.compile(r"##\s+(?P<title>.+?)\s*#*$")
_FENCE = re.compile(r"\s*(?P<fence>```+|~~~+)")
_FIX = {
    Applicability.SAFE: "safe (`--fix`)",
    Applicability.UNSAFE: "unsafe (`--fix --unsafe-fixes`)",
    Applicability.HINT: "shown, never applied",
    None: "none",
}

_STAGES = {
    "preview": (
        "This rule is in preview: too few of its findings in real code have been read, or too few of these were right. "
        "It is on like the others; `--no-preview` turns it off.",
    ),
    "deprecated": (
        "This rule is deprecated: a later release will not have it. It is off unless its own code or name selects it.",
    ),
}


class PageError(ValueError):
    """A text that is not a page: a section is missing, empty, unknown or there twice."""


@immutable()
class Page:
    """A rule's metadata and its sections, each as Markdown without its heading; "" where a plugin's rule has none."""

    code: str
    name: str
    severity: Severity  # the highest that the rule gives
    on: bool  # on by default
    fix: Applicability | None  # the best that its fixes have
    status: str  # how far it has come, and since which release: "stable since 0.1"
    instead: str  # of a deprecated rule: the code of the one that takes its place
    in_short: str
    what_it_does: str
    why_it_costs_memory: str
    example: str
    use_instead: str
    fix_safety: str
    when_it_stays_silent: str
    references: str


def page(rule: Rule | type[Rule]) -> Page:
    """The rule's page; PageError where it has none, or one with mistakes."""
    kind = rule if isinstance(rule, type) else type(rule)
    # The class's own: an inherited docstring would describe another rule.
    text = body(kind.page) if kind.page is not None else inspect.cleandoc(kind.__dict__.get("__doc__") or "")
    found = _sections(text, kind.code)
    needed = [title for title in SECTIONS if title not in OPTIONAL] if kind.code.startswith(OWN) else REQUIRED
    missing = [title for title in needed if not found.get(title)]
    if missing:
        raise PageError(f"{kind.code}: no text for {', '.join(f'`## {title}`' for title in missing)}")
    fields = {field: found.get(title, "") for title, field in SECTIONS.items()}
    fields["in_short"] = "\n".join(
        filter(None, [*(f"- **Cost**: {cost}" for cost in costs(kind.code)), fields["in_short"]])
    )
    return Page(kind.code, kind.name, kind.severity, kind.on, kind.fix, status(kind), kind.instead, **fields)


@functools.cache
def _measured() -> dict[str, list[str]]:
    text = Path(__file__).with_name("costs.json").read_text(encoding="utf-8")
    found: dict[str, list[str]] = json.loads(text)
    return found


def costs(code: str) -> list[str]:
    """What a rule's experiments were measured to cost, a sentence each; none where there is no experiment."""
    return _measured().get(code, [])


def status(rule: Rule | type[Rule]) -> str:
    """How far a rule has come, and since which release, if that is known."""
    return f"{rule.stage.value} since {rule.version}" if rule.version else rule.stage.value


def summary(rule: Rule) -> str:
    """What a page begins with, in one line; where it has no such words, why the pattern costs memory."""
    kind = type(rule)
    text = body(kind.page) if kind.page is not None else inspect.cleandoc(kind.__dict__.get("__doc__") or "")
    return " ".join(text.split("\n## ", 1)[0].split()) or rule.why


def to_markdown(page: Page) -> str:
    """The page as Markdown, with a heading and the rule's metadata; ends with a newline."""
    facts = (
        f"Severity: **{page.severity.value}**",
        f"Default: **{'on' if page.on else 'off'}**",
        f"Fix: **{_FIX[page.fix]}**".replace("**none**", "none"),
        f"Status: {page.status}",
    )
    parts = [f"# {page.name} ({page.code})", " · ".join(facts), *_STAGES.get(page.status.split()[0], ())]
    if page.instead:
        parts.append(f"Select **{page.instead}** instead.")
    for title, field in SECTIONS.items():
        if text := getattr(page, field):
            parts += [f"## {title}", text]
    return "\n\n".join(parts) + "\n"


def shown(text: str, *, color: bool, width: int = 100) -> str:
    """Markdown for reading in a terminal of `width` columns; as it is where there is no colour."""
    if not color:
        return text
    from rich.console import Console
    from rich.markdown import Markdown

    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, color_system="standard", width=width, legacy_windows=False)
    console.print(Markdown(text, hyperlinks=False))
    return stream.getvalue()


def _sections(text: str, code: str) -> dict[str, str]:
    """The sections by title; a heading inside a code block is not one."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    fence: str | None = None
    for line in text.splitlines():
        mark = _FENCE.match(line)
        if mark is not None and (fence is None or mark["fence"].startswith(fence)):
            fence = mark["fence"] if fence is None else None
        heading = _HEADING.match(line) if fence is None else None
        if heading is None:
            current.append(line)
            continue
        title = heading["title"]
        if title not in SECTIONS:
            raise PageError(f"{code}: unknown section `## {title}`")
        if title in found:
            raise PageError(f"{code}: section `## {title}` is there twice")
        current = found[title] = []
    if fence is not None:
        raise PageError(f"{code}: a code block is not closed")
    return {title: "\n".join(lines).strip() for title, lines in found.items()}
