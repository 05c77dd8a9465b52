"""TML310 implicit-reentrant-checkpoint."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.doubts import Doubt
from torchmemlint.findings import Applicability, Finding, Fix
from torchmemlint.flow.fact.formulas import Formula
from torchmemlint.flow.facts import FileFacts
from torchmemlint.flow.ir.ops import Call, CallMethod, Import
from torchmemlint.flow.ir.places import Spread
from torchmemlint.flow.names.suites import tests_live_here
from torchmemlint.knowledge import autograd, versions
from torchmemlint.rules.arguments import call_at
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import report_operation

# Releases whose function takes `use_reentrant`: docs.pytorch.org/docs/1.11/checkpoint.html, pytorch#86331.
_CHECKPOINT = "torch.utils.checkpoint.checkpoint"
_CHOICE_SINCE = {_CHECKPOINT: (1, 11), "torch.utils.checkpoint.checkpoint_sequential": (2, 0)}
_NEVER = (99,)
_PLACES = autograd.places("checkpoint-recomputes")  # of the choice, where it is not given by keyword only
# The keywords that the reentrant form of `checkpoint` takes; for others, which it could not hand on, it raises.
_REENTRANT = autograd.names("checkpoint-options") | {"function"}


class ImplicitReentrantCheckpoint(Rule):
    """A checkpoint does not say whether it is reentrant, and so is."""

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield checkpoints that leave the choice to torch's default."""
        if tests_live_here(facts.program.within):
            return
        target = versions.release_of(facts.target_torch)
        for formula, op, name in facts.calls("checkpoint"):
            if target < _CHOICE_SINCE.get(name, _NEVER) or not _is_undecided(op, name) or _is_rebound(formula, op):
                continue
            call = call_at(facts, facts.source.span_of(op.span))
            edits = call.adding("use_reentrant=False") if call is not None else ()
            yield report_operation(
                self,
                facts,
                op,
                f"`{formula.spelled(op)}` defaults to `use_reentrant=True`, {_trouble(formula, op, name)}",
                evidence=[(op, f"`{name}` is called without `use_reentrant`")],
                fix=Fix("Pass `use_reentrant=False`", Applicability.UNSAFE, edits),
                doubts=(Doubt.SIZE,),  # a few per cent of the peak
            )


def _is_undecided(op: Call | CallMethod, name: str) -> bool:
    spreads = [one.spread for one in op.arguments]
    if Spread.STARS in spreads or any(one.name == "use_reentrant" for one in op.arguments):
        return False
    place = _PLACES[name]
    return place is None or (Spread.STAR not in spreads and spreads.count(Spread.PLAIN) <= place)


def _is_rebound(formula: Formula, op: Call | CallMethod) -> bool:
    """Is the imported name given another value in the file: `checkpoint = partial(checkpoint, use_reentrant=False)`?"""
    bound = formula.beside.constant(formula.spelled(op).partition(".")[0])
    return any(not isinstance(module.made(source), Import) for module, source in bound)


def _trouble(formula: Formula, op: Call | CallMethod, name: str) -> str:
    given = {one.name: one.temp for one in op.arguments if one.spread is Spread.NAMED and name == _CHECKPOINT}
    refused = [f"`{one}`" for one in given if one not in _REENTRANT]
    if "`debug`" in refused and formula.constant(given["debug"]) is False:
        refused.remove("`debug`")
    return f"which does not accept {', '.join(refused)}: this call raises" if refused else "which PyTorch deprecates"
