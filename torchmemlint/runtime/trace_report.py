"""What `torchmemlint trace` found out, as plain data. Knows nothing of torch; bytes unless said otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from torchmemlint.immutable import immutable
from torchmemlint.runtime.collector import Waiting
from torchmemlint.runtime.holders import Holder
from torchmemlint.runtime.idle import Idle, IdlePart
from torchmemlint.runtime.kinds import Kind
from torchmemlint.runtime.leaks import Leak
from torchmemlint.runtime.ledger import Site
from torchmemlint.runtime.results import RunResult
from torchmemlint.runtime.seldom import Seldom
from torchmemlint.runtime.shared import Shared
from torchmemlint.runtime.survivors import Accrual
from torchmemlint.runtime.uses import Unneeded


@immutable()
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


@immutable()
class Told:
    """A finding of the linter that says something about a leak."""

    code: str
    path: str
    line: int
    message: str


@immutable()
class TracedLeak:
    """A leak, with what the linter says about its lines; nothing where no rule knows it."""

    leak: Leak
    findings: tuple[Told, ...]
    ranks: tuple[int, ...] = ()  # of several processes, those that have it


@immutable()
class TraceReport:
    """One run of a program.

    `filling` is what grows up to a bound that its holder has, `gathered` what is collected to be used later; neither is
    a leak. `waiting` is what waited for the garbage collector, `idle` what lived at a peak and was not used any more,
    `unneeded` what backward passes kept and made for gradients that no optimizer uses, `seldom` the lines that keep
    something now and then, in too few turns to tell whether it goes on, `shared` those whose tensors on a simulated GPU
    go to another process or come from one.
    """

    program: str
    directory: str
    run: RunResult
    leaks: tuple[TracedLeak, ...]
    filling: tuple[TracedLeak, ...]
    timeline: Timeline
    notes: tuple[str, ...] = ()
    gathered: tuple[TracedLeak, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    idle: tuple[Idle, ...] = ()
    unneeded: Unneeded | None = None
    seldom: tuple[Seldom, ...] = ()
    shared: tuple[Shared, ...] = ()

    @property
    def growing(self) -> bool:
        """Whether memory grows: something is kept, or left to the garbage collector."""
        return bool(self.leaks or self.waiting)

    @property
    def blind(self) -> bool:
        """Whether nothing was found to grow, and looks failed that might have found it."""
        return not self.growing and self.run.failed_looks > 0

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
            "growing": self.growing,
            "leaks": [_traced(one) for one in self.leaks],
            "filling": [_traced(one) for one in self.filling],
            "gathered": [_traced(one) for one in self.gathered],
            "waiting": [waiting_to_json(one) for one in self.waiting],
            "idle": [idle_to_json(one) for one in self.idle],
            "unneeded": None if self.unneeded is None else unneeded_to_json(self.unneeded),
            "seldom": [asdict(one) for one in self.seldom],
            "shared": [asdict(one) for one in self.shared],
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
    values["holder"] = _holder_to_json(leak.holder)
    values["also"] = [_holder_to_json(holder) for holder in leak.also]
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
        values["gathered"],
        values["on_host"],
    )


def waiting_to_json(one: Waiting) -> dict[str, Any]:
    """What waited for the collector as JSON's types, with its line first."""
    return {"line": asdict(one.line), **asdict(one), "cycle": _holder_to_json(one.cycle)}


def waiting_from_json(values: Mapping[str, Any]) -> Waiting:
    """Back from JSON's types."""
    own = {name: value for name, value in values.items() if name != "line"}
    return Waiting(**{**own, "site": _site(own["site"]), "cycle": _holder(own["cycle"])})


def idle_to_json(one: Idle) -> dict[str, Any]:
    """What is idle at a peak as JSON's types; each part with its line first."""
    parts = [
        {
            "line": asdict(part.line),
            **asdict(part),
            "holder": _holder_to_json(part.holder),
            "made": _lines_to_json(part.made),
            "kind": part.kind.label,
        }
        for part in one.parts
    ]
    return {**asdict(one), "parts": parts}


def idle_from_json(values: Mapping[str, Any]) -> Idle:
    """Back from JSON's types."""
    labels = {kind.label: kind for kind in Kind}
    parts = (
        IdlePart(_holder(one["holder"]), _lines(one["made"]), one["nbytes"], one["storages"], labels[one["kind"]])
        for one in values["parts"]
    )
    return Idle(**{**values, "parts": tuple(parts)})


def unneeded_to_json(one: Unneeded) -> dict[str, Any]:
    """What is kept for gradients that nobody uses, as JSON's types."""
    return {**asdict(one), "nbytes": one.nbytes, "saved": _lines_to_json(one.saved)}


def unneeded_from_json(values: Mapping[str, Any]) -> Unneeded:
    """Back from JSON's types."""
    return Unneeded(_lines(values["saved"]), values["gradients"], values["parameters"])


def seldom_from_json(values: Mapping[str, Any]) -> Seldom:
    """A line that keeps something now and then, from JSON's types."""
    return Seldom(**{**values, "line": _site(values["line"])})


def shared_from_json(values: Mapping[str, Any]) -> Shared:
    """A line whose tensors are shared, from JSON's types."""
    return Shared(**{**values, "line": _site(values["line"])})


def _lines_to_json(lines: Iterable[tuple[Site, int]]) -> list[dict[str, Any]]:
    return [{**asdict(site), "nbytes": nbytes} for site, nbytes in lines]


def _lines(values: Iterable[Mapping[str, Any]]) -> tuple[tuple[Site, int], ...]:
    return tuple((_site(one), one["nbytes"]) for one in values)


def _holder_to_json(holder: Holder | None) -> dict[str, Any] | None:
    return None if holder is None else {**asdict(holder), "graph_lines": _lines_to_json(holder.graph_lines)}


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
            "graph_lines": _lines(values["graph_lines"]),
        }
    )
