"""Which facts are cases of which rule, without messages: for measuring the analysis."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from torchmemlint.doubts import Confidence, Doubt, confidence
from torchmemlint.flow.domain import refs
from torchmemlint.flow.domain.effects import How, Point
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact import roles
from torchmemlint.flow.fact.entries import runs
from torchmemlint.flow.fact.evidence import Evidence
from torchmemlint.flow.fact.logs import Run
from torchmemlint.flow.fact.passes import Passes, Reason
from torchmemlint.flow.fact.retention import Fate, Retention, retentions
from torchmemlint.flow.ir.lower import lower
from torchmemlint.flow.names.index import Index


class Case(NamedTuple):
    """A fact at a place."""

    file: str
    line: int
    code: str
    confidence: Confidence
    doubts: frozenset[Doubt]
    advice: bool = False  # one graph, not a growing number of them


def check(files: Mapping[str, str]) -> list[tuple[str, int, str, str]]:
    """Return (file, line, code, confidence) of all cases in some files, which may import each other."""
    return [(c.file, c.line, c.code, "advice" if c.advice else c.confidence.value) for c in cases(files)]


def cases(files: Mapping[str, str]) -> list[Case]:
    """Return all cases in some files."""
    refs.forget()
    index = Index()
    names = {}
    for file, text in files.items():
        module = file.removesuffix(".py").replace("/", ".")
        unit = lower(text, module.removesuffix(".__init__"))
        unit.package = module.endswith("__init__")
        names[unit] = file
        index.add(unit)
    engine = Engine(index)
    done = [(run, Evidence(engine, run)) for run in runs(engine)]
    found: dict[tuple[str, int, str], Case] = {}
    for point, code, doubts, advice in [*_kept(done), *_wasted(engine, done)]:
        op = point.site
        case = Case(names[op.owner.unit], op.span[0], code, confidence(doubts), doubts, advice)
        old = found.get(case[:3])
        if old is None or len(doubts) < len(old.doubts):
            found[case[:3]] = case
    for file, line, code in list(found):
        if (code == "TML102" and (file, line, "TML106") in found) or (
            code == "TML103" and (file, line, "TML101") in found
        ):
            del found[file, line, code]
    return sorted(found.values(), key=lambda c: c[:3])


Selected = tuple[Point, str, frozenset[Doubt], bool]


def _kept(done: Iterable[tuple[Run, Evidence]]) -> Iterator[Selected]:
    for run, evidence in done:
        for kept in retentions(run, evidence):
            code = _code_of(kept)
            if code is not None:
                yield kept.point, code, kept.doubts, not kept.grows


def _code_of(kept: Retention) -> str | None:
    if kept.grows:
        if kept.how is How.SUM and kept.fate is Fate.EACH:
            return "TML104"
        if kept.fate in (Fate.EACH, Fate.LATER):
            return None
        return {How.SUM: "TML101", How.COLLECTION: "TML102", How.HOOK: "TML106", How.CACHE: "TML103"}[kept.how]
    if kept.fate is Fate.NEVER and kept.spent:
        return "TML106" if kept.how is How.HOOK else "TML103"
    return None


def _wasted(engine: Engine, done: list[tuple[Run, Evidence]]) -> Iterator[Selected]:
    passes = [Passes(engine, run, evidence) for run, evidence in done]
    used = {site for one in passes for site in one.differentiated()}
    for p in (p for one in passes for p in one.all()):
        if p.reason is None:
            continue
        sites = [site for site in p.point.chain() if site not in used]
        own = [site for site in sites if not roles.is_of_forward(engine, site.owner)]  # not a line of training, too
        if sites:
            yield Point((own or sites)[0]), "TML203" if p.reason is Reason.DETACHED else "TML201", p.doubts, False
