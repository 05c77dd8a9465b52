"""TML505 state-dict-copy-on-device."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.findings import Applicability, Edit, Finding, Fix, Severity
from torchmemlint.flow.facts import FileFacts
from torchmemlint.knowledge.checkpoints import WITHOUT_TENSORS
from torchmemlint.rules.allocation import snapshots
from torchmemlint.rules.allocation.snapshots import Collected, Snapshot
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import report_operation, written
from torchmemlint.syntax.text import shortened

_STATE = frozenset({"state_dict"})
_ON_HOST = 'to("cpu", copy=True)'


class StateDictCopyOnDevice(Rule):
    """The weights of the best epoch wait on the device for the end of the training, or those of all epochs."""

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield copies of states that could wait on the host, and those that a loop collects."""
        for formula in facts.formulas(_STATE):
            for one in snapshots.collected(formula):
                if owner := _owner(facts, one):
                    what = f"`{one.box}` keeps a copy of the weights of `{shortened(owner, 40)}`"
                    where = "is in CPU memory" if one.on_host else "is on the same device as the weights"
                    fix = Fix("Copy the weights to the CPU", Applicability.UNSAFE, (_edit(facts, one),))
                    yield report_operation(
                        self,
                        facts,
                        one.op,
                        f"{what} {'in CPU memory ' if one.on_host else ''}for every {one.each}",
                        severity=Severity.ADVICE if one.on_host else None,
                        evidence=[(one.state, f"the copy {where}")],
                        fix=Fix("Keep only the copy that is read later", Applicability.HINT) if one.single else fix,
                    )
            for found in snapshots.find(formula):
                if owner := _owner(facts, found):
                    yield report_operation(
                        self,
                        facts,
                        found.op,
                        f"`{found.target}` is a copy of `{shortened(owner, 40)}` on the GPU, only restored later",
                        severity=Severity.ADVICE,
                        evidence=[
                            (found.on_device, "something is moved to a device here"),
                            (found.test, f"a copy is taken where `{written(facts, found.test, 50)}`"),
                            (found.restored, "nothing else is done with the copy"),
                        ],
                        fix=Fix("Copy the weights to the CPU", Applicability.UNSAFE, (_edit(facts, found),)),
                    )


def _owner(facts: FileFacts, found: Snapshot | Collected) -> str:
    """What has the state, as it is written; "" if there are no tensors in that."""
    owner = written(facts, found.state, 80).removesuffix(".state_dict()")
    return "" if any(word in owner.lower() for word in WITHOUT_TENSORS) else owner


def _edit(facts: FileFacts, found: Snapshot | Collected) -> Edit:
    rows = facts.source.rows
    if found.clone is not None:
        span = facts.source.span_of(found.clone.span)
        return Edit(span, f"{span.text(rows).removesuffix('.clone()')}.{_ON_HOST}")
    state = facts.source.span_of(found.state.span).text(rows)
    copied = f"{{name: value.{_ON_HOST} for name, value in {state}.items()}}"
    return Edit(facts.source.span_of(found.op.span), copied)
