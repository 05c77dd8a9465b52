"""The pages of the rules in `docs/rules`, and their index.

A page is what the rule says of itself, with what no such text can say for certain: a program of the fixtures, what the
linter says of it, what the fix makes of it, a program that looks alike and is left alone, what the pattern was measured
to cost and how many of the rule's findings in real code were true.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

from torchmemlint.findings import Applicability
from torchmemlint.rules import docs
from torchmemlint.rules.base import Rule
from torchmemlint.rules.families import FAMILIES, Family
from torchmemlint.rules.registry import all_rules
from torchmemlint.sizes import format_size

ROOT = Path(__file__).resolve().parent.parent
FIXTURES = ROOT / "fixtures"
HEADER = "<!-- written by tools/documents.py of the rule, its fixtures and what was measured -->\n\n"
EXPECTED = re.compile(r"[ \t]*# expect: .*")
KINDS = ("bad", "good")
MANY_LINES = 30


LEGEND = """\
**Severity** is the highest that a rule gives. *error*: memory grows without bound, or the code does not do what it
says. *warning*: bounded but real waste. *advice*: correct code that is merely untuned; it fails no run unless asked to.
**Fix**: a *safe* one leaves results as they are, an *unsafe* one may change numbers, timing or types, a *hint* is only
shown. **Status**: a rule is *stable* once at least five of its findings in code that it had not met were read, and the
facts were right in four of five; until then it is in *preview* ([why it is on](../configuration.md#rules-in-preview)).

[Configuration](../configuration.md) says how rules are chosen, [suppressions](../suppressions.md) how one finding is
silenced, and [precision](../precision.md) how often they are right."""


def family_of(code: str) -> Family:
    """The family of a rule."""
    return next(family for family in FAMILIES if family.digit == code[3])


def pages(told: Callable[[str], str]) -> dict[str, Callable[[], str]]:
    """Each page's path in the repository and what makes it."""
    made: dict[str, Callable[[], str]] = {"docs/rules/README.md": index}
    for rule in all_rules():
        made[f"docs/rules/{rule.code}.md"] = partial(page, rule, told)
    return made


def index() -> str:
    """All rules, by family."""
    parts = [
        "# Rules",
        LEGEND,
    ]
    for family in FAMILIES:
        lines = ["| rule | | severity | default | fix | status |", "|---|---|---|---|---|---|"]
        for rule in all_rules():
            if rule.code[3] == family.digit:
                fix = f" {rule.fix.value}" if rule.fix else ""
                sentence = f"**{rule.name}**: {rule.why}"
                on = "on" if rule.on else "off"
                stage = rule.stage.value
                row = f"[{rule.code}]({rule.code}.md) | {sentence} | {rule.severity.value} | {on} |{fix} | {stage}"
                lines.append(f"| {row} |")
        more = f"More: [{family.page.replace('-', ' ')}](../{family.page}.md)."
        parts += [f"## {family.title} ({family.digit}xx)", f"{family.about} {more}", "\n".join(lines)]
    return HEADER + "\n\n".join(parts) + "\n"


def page(rule: Rule, told: Callable[[str], str]) -> str:
    """A rule's page."""
    family = family_of(rule.code)
    text = docs.to_markdown(docs.page(rule))
    text = re.sub(
        r"^(Severity: .*)$", rf"\1 · Family: [{family.title}](../{family.page}.md)", text, count=1, flags=re.M
    )
    before, references = text.split("## References", 1)
    parts = [*examples(rule), *figures(rule), *precision(told(rule.code))]
    return HEADER + before + "".join(f"{part}\n\n" for part in parts) + "## References" + references


def examples(rule: Rule) -> Iterator[str]:
    """A program with the pattern, what is said of it, its fix, and a program that looks alike."""
    folder = FIXTURES / f"{rule.code}-{rule.name}"
    if not folder.is_dir():
        return
    bad, change = example(rule, folder)
    unsafe = rule.fix is Applicability.UNSAFE
    yield "## Seen in a program"
    yield program(bad)
    yield "\n".join(f"- {one}" for one in said(rule, bad))
    if change:
        yield f"What `--fix{' --unsafe-fixes' if unsafe else ''}` makes of it:"
        yield f"```diff\n{change}\n```"
    good = min(folder.glob("good_*.py"), key=lines_of)
    if lines_of(good)[0] <= MANY_LINES:
        yield "This one looks alike and is left alone:"
        yield program(good)
    else:
        yield '<details markdown="1"><summary>This one looks alike and is left alone</summary>'
        yield program(good)
        yield "</details>"
    found, alike = (len([path for path in folder.glob(f"{kind}_*.py") if is_program(path)]) for kind in KINDS)
    yield (
        f"`{folder.relative_to(ROOT).as_posix()}` has {of_number(found, 'program')} with the pattern, and "
        f"{alike} without it that look alike. The tests hold the rule to all of them."
    )


def output(rule: Rule, path: Path, *arguments: str) -> str:
    """What the linter prints of a program, which has to do with no other."""
    from torchmemlint.cli.main import main

    alone = ("--project-root", str(path.parent), "--quiet", "--isolated", "--color=never")
    with contextlib.redirect_stdout(io.StringIO()) as stream, contextlib.redirect_stderr(io.StringIO()):
        main((str(path), "--select", rule.code, *arguments, *alone))
    return stream.getvalue()


def said(rule: Rule, path: Path) -> Iterator[str]:
    """The messages of the findings in a program, each once, with their lines."""
    places: dict[str, list[int]] = {}
    for finding in json.loads(output(rule, path, "--output-format", "json")):
        places.setdefault(finding["what"], []).append(finding["location"]["row"])
    for message, rows in places.items():
        yield f"line{'s' * (len(rows) > 1)} {', '.join(map(str, rows))}: {message}"


def of_number(count: int, noun: str) -> str:
    """A number of things."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def lines_of(path: Path) -> tuple[int, str]:
    """How long a program is; the name decides between equals."""
    return path.read_text(encoding="utf-8").count("\n"), path.name


def is_program(path: Path) -> bool:
    """Whether a fixture is none that says what another one becomes."""
    return not path.name.endswith(".fixed.py")


def example(rule: Rule, folder: Path) -> tuple[Path, str]:
    """The shortest program with the pattern, one that has a fix if there is one; and the fix."""
    programs = sorted(filter(is_program, folder.glob("bad_*.py")), key=lines_of)
    applied = rule.fix in (Applicability.SAFE, Applicability.UNSAFE)
    for path in programs if applied else ():
        change = changed(rule, path)
        if change:
            return path, change
    return programs[0], ""


def changed(rule: Rule, path: Path) -> str:
    """What the rule's fixes, of its best kind, change in a program: the lines of a diff, without file names."""
    unsafe = ["--unsafe-fixes"] if rule.fix is Applicability.UNSAFE else []
    lines = output(rule, path, "--diff", *unsafe).splitlines()
    return "\n".join(EXPECTED.sub("", line) for line in lines if not line.startswith(("---", "+++")))


def program(path: Path) -> str:
    """A program without the comments that tests read, the lines with findings marked."""
    lines = path.read_text(encoding="utf-8").strip().splitlines()
    found = [number for number, line in enumerate(lines, 1) if EXPECTED.search(line)]
    marks = f' hl_lines="{" ".join(map(str, found))}"' if found else ""
    text = "\n".join(EXPECTED.sub("", line) for line in lines)
    return f'```python title="{path.name}"{marks}\n{text}\n```'


@cache
def impact() -> Any:
    """The last runs of the experiments."""
    return json.loads((ROOT / "docs" / "impact.json").read_text(encoding="utf-8"))


def figures(rule: Rule) -> Iterator[str]:
    """What the rule's experiments gave, on a GPU and simulated: there is no time in a simulation, and no process."""
    from torchmemlint.runtime.experiments import table
    from torchmemlint.runtime.experiments.outcome import Outcome

    real, simulated = impact()["cuda"], impact()["simulated"]
    outcomes = [one for one in map(Outcome.from_json, real["outcomes"]) if one.code == rule.code]
    told = {one.title: table.change(one) for one in map(Outcome.from_json, simulated["outcomes"])}
    if not outcomes:
        return
    card = outcomes[0].backend.partition("(")[2].partition(",")[0]
    yield "## Measured"
    yield (
        f"With the pattern and without it, in a small network, on an {card} (torch {real['torch']}) and on the "
        f"[simulated card](../simulated.md) (torch {simulated['torch']}); [all rules](../impact.md). "
        f"`torchmemlint verify --rule {rule.code}` runs it again."
    )
    lines = ["| program | figure | GPU: bad → good | simulated |", "|---|---|--:|--:|"]
    for one in outcomes:
        note = f" ({one.note})" if one.note else ""
        lines.append(f"| {one.title}{note} | {one.effect.value} | {table.change(one)} | {told.get(one.title, '-')} |")
    yield "\n".join(lines)


_COSTS = {  # of a figure: what more of it is called, for what was with the pattern and what was without it
    "growth": "{saved} more GPU memory with each step",
    "peak": "{bad} of GPU memory at the peak instead of {good}",
    "host peak": "{bad} of CPU memory at the peak instead of {good}",
    "host growth": "{saved} more CPU memory with each step",
    "time": "{bad} per step instead of {good}",
    "worker memory": "{bad} of CPU memory in the workers instead of {good}",
    "driver calls": "{bad} requests to the driver in each step instead of {good}",
}


LIKE = {"TML207": "TML201"}  # rules without an experiment of their own: which one has the same cost


def measured_costs() -> str:
    """What each rule's pattern was measured to cost: the file that the linter's own pages read (JSON)."""
    found = {rule.code: list(costs(LIKE.get(rule.code, rule.code))) for rule in all_rules()}
    return json.dumps({code: said for code, said in found.items() if said}, indent=2, ensure_ascii=False) + "\n"


def costs(code: str) -> Iterator[str]:
    """What each experiment of a rule showed, in a sentence; what it did not save is said, too."""
    from torchmemlint.runtime.experiments import table
    from torchmemlint.runtime.experiments.outcome import Outcome

    real, simulated = impact()["cuda"], impact()["simulated"]
    on_gpu = [one for one in map(Outcome.from_json, real["outcomes"]) if one.code == code]
    for one in on_gpu or [one for one in map(Outcome.from_json, simulated["outcomes"]) if one.code == code]:
        where = one.backend.partition("(")[2].partition(",")[0].removesuffix(")") if on_gpu else "on the simulated card"
        where = f"measured on an {where}" if on_gpu else where
        bad, good = (table.figure(side, one.effect).removesuffix("/step") for side in (one.bad, one.good))
        if one.saved is None or bad == good or one.saved <= table.NOTICEABLE * (one.bad.of(one.effect) or 0):
            yield f"no saving showed ({one.title}: {table.change(one)}; {where}, in a small program)"
            continue
        saved = format_size(one.saved)
        said = _COSTS[one.effect.value].format(saved=saved, bad=bad, good=good)
        yield f"{said} ({one.title}; {where}, in a small program)"


def precision(told: str) -> Iterator[str]:
    """How often the rule was right."""
    if told:
        yield "## Precision"
        yield (
            f"{told} The [page about precision](../precision.md) says what was false, and what has been fixed since."
        )


def navigation() -> str:
    """The rules in the site's navigation (YAML)."""
    lines = []
    for family in FAMILIES:
        lines.append(f"      - {family.title}:")
        rules = (rule for rule in all_rules() if rule.code[3] == family.digit)
        lines += [f"          - {rule.code} {rule.name}: rules/{rule.code}.md" for rule in rules]
    return "\n".join(lines) + "\n"
