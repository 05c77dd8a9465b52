"""TML604 heavy-optimizer-state."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.findings import Applicability, Finding, Fix
from torchmemlint.flow.fact.formulas import Formula
from torchmemlint.flow.facts import FileFacts
from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.ir.ops import Call, CallMethod, Op
from torchmemlint.flow.ir.places import Spread
from torchmemlint.knowledge import optimizers
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import report_operation

_HEAVY = 2  # numbers for each parameter
_FLOAT = 4  # bytes
_DIVIDED = ("FSDP", "FullyShardedDataParallel", "fully_shard", "ZeroRedundancyOptimizer", "deepspeed", "fsdp")
_FEW = ("get_peft_model", "LoraConfig", "add_adapter")
_NAMES = frozenset(qualified.rpartition(".")[2] for qualified in optimizers.KEEPS)
_SETTINGS = frozenset(setting for known in optimizers.KEEPS.values() for setting, _ in known.settings)
_OF_MODELS = frozenset({"parameters", "named_parameters"})


class HeavyOptimizerState(Rule):
    """An optimizer keeps at least two further numbers for every parameter of a model."""

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield optimizers with at least two numbers for each parameter."""
        if any(word in facts.source.text for word in (*_DIVIDED, *_FEW)):
            return
        for formula, op, name in facts.calls(*_NAMES):
            kept, parameters = _kept(formula, op, name), _parameters(formula, op)
            if kept is None or kept < _HEAVY or parameters is None:
                continue
            yield report_operation(
                self,
                facts,
                op,
                f"`{formula.spelled(op)}` stores {kept * _FLOAT} bytes per parameter, "
                f"{(kept + 2) * _FLOAT} with parameter and gradient (float32)",
                evidence=[(parameters, "each of these has state from the first `step()` on")],
                fix=Fix(
                    "If memory is short, use 8-bit or factored state, or shard the state over processes",
                    Applicability.HINT,
                ),
            )


def _kept(formula: Formula, op: Call | CallMethod, name: str) -> int | None:
    """Numbers for each number of a parameter; None where settings that are not in view may ask for more, or less."""
    if any(one.spread in (Spread.STAR, Spread.STARS) for one in op.arguments):
        return None
    settings = {one.name: formula.constant(one.temp) for one in op.arguments if one.name in _SETTINGS}
    return None if None in settings.values() else optimizers.keeps(name, settings)


def _parameters(formula: Formula, op: Call | CallMethod) -> Op | None:
    """`model.parameters()` in what is optimized."""
    given = next((one for one in op.arguments if one.name in ("", "params")), None)
    whole = formula.written(given.temp) if given is not None else None
    if whole is None:
        return None
    parts = (part for part in operations(formula.function.body) if isinstance(part, CallMethod))
    within = (part for part in parts if whole.span[:2] <= part.span[:2] and part.span[2:] <= whole.span[2:])
    return next((part for part in within if part.name in _OF_MODELS), None)
