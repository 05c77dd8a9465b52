"""What `torchmemlint trace` found out, as plain data. Knows nothing of torch; bytes unless said otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from torchmemlint.runtime.holders import Holder
from torchmemlint.runtime.kinds import Kind
from torchmemlint.runtime.leaks import Leak
from torchmemlint.runtime.ledger import Site
from torchmemlint.runtime.results import RunResult
from torchmemlint.runtime.survivors import Accrual


@dataclass(frozen=True, slots=True)
class Timeline:
    """The bytes alive, by kind, at some of the `moments` at which a step, or a turn of one of the `series`, ended.

    Without series the moments are at even distances.
    """

    moments: int
    series: tuple[str, ...]
    by_kind: Mapping[str, tuple[int, ...]]

    def to_json(self) -> dict[str, Any]:
        """As JSON's types."""
        by_kind = {kind: list(values) for kind, values in self.by_kind.items()}
        return {"moments": self.moments, "series": list(self.series), "by_kind": by_kind}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Timeline:
        """Back from them."""
        by_kind = {kind: tuple(held) for kind, held in values["by_kind"].items()}
        return cls(values["moments"], tuple(values["series"]), by_kind)


@dataclass(frozen=True, slots=True)
class Told:
    """A finding of the linter that says something about a leak."""

    code: str
    path: str
    line: int
    message: str


@dataclass(frozen=True, slots=True)
class TracedLeak:
    """A leak, with what the linter says about its lines; nothing where no rule knows it."""

    leak: Leak
    findings: tuple[Told, ...]
    ranks: tuple[int, ...] = ()  # of several processes, those that have it


@dataclass(frozen=True, slots=True)
class TraceReport:
    """One run of a program. `filling` is what grows up to a bound that its holder has, which is no leak."""

    program: str
    directory: str
    run: RunResult
    leaks: tuple[TracedLeak, ...]
    filling: tuple[TracedLeak, ...]
    timeline: Timeline
    notes: tuple[str, ...] = ()

    @property
    def unknown(self) -> tuple[TracedLeak, ...]:
        """The leaks that no rule has a finding for."""
        return tuple(one for one in self.leaks if not one.findings)

    def to_json(self) -> dict[str, Any]:
        """As JSON's types; the run's own analysis is in it once."""
        run = self.run.to_json()
        for one in (run, *run["ranks"]):
            one.pop("analysis")
        return {
            "program": self.program,
            "directory": self.directory,
            "growing": bool(self.leaks),
            "leaks": [_traced(one) for one in self.leaks],
            "filling": [_traced(one) for one in self.filling],
            "timeline": self.timeline.to_json(),
            "notes": list(self.notes),
            "run": run,
        }


def _traced(one: TracedLeak) -> dict[str, Any]:
    findings = [asdict(finding) for finding in one.findings]
    return {**leak_to_json(one.leak), "findings": findings, "ranks": list(one.ranks)}


def leak_to_json(leak: Leak) -> dict[str, Any]:
    """A leak as JSON's types, with its leaking line first."""
    values = asdict(leak)
    values["kinds"] = {kind.label: nbytes for kind, nbytes in leak.kinds}
    values["made"] = [{**asdict(site), "bytes_per_turn": nbytes} for site, nbytes in leak.made]
    for holder in (values["holder"], *values["also"]):
        if holder is not None:
            holder["graph_lines"] = [{**site, "nbytes": nbytes} for site, nbytes in holder["graph_lines"]]
    return {"line": asdict(leak.line), **values}


def leak_from_json(values: Mapping[str, Any]) -> Leak:
    """Back from JSON's types."""
    labels = {kind.label: kind for kind in Kind}
    return Leak(
        Accrual(**values["growth"]),
        _holder(values["holder"]),
        tuple((_site(one), one["bytes_per_turn"]) for one in values["made"]),
        tuple((labels[label], nbytes) for label, nbytes in values["kinds"].items()),
        values["retained"],
        values["block_bytes"],
        values["bounded"],
        tuple(holder for one in values["also"] if (holder := _holder(one)) is not None),
        values["look"],
        tuple(Accrual(**one) for one in values["besides"]),
        values["stays"],
    )


def _site(values: Mapping[str, Any]) -> Site:
    return Site(values["path"], values["line"], values["function"])


def _holder(values: Mapping[str, Any] | None) -> Holder | None:
    if values is None:
        return None
    return Holder(
        **{
            **values,
            "site": _site(values["site"]),
            "filled": tuple(_site(one) for one in values["filled"]),
            "graph_lines": tuple((_site(one), one["nbytes"]) for one in values["graph_lines"]),
        }
    )
