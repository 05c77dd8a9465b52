"""Logarithms of a softmax or sigmoid that nothing else takes."""

from __future__ import annotations

from torchmemlint.flow.fact.formulas import Formula
from torchmemlint.flow.fact.operands import Operation
from torchmemlint.flow.fact.origins import is_parameter, usual
from torchmemlint.flow.ir.ops import GetAttribute
from torchmemlint.flow.ir.places import Temp
from torchmemlint.immutable import immutable
from torchmemlint.knowledge import torch_api

_SMALL = 0.01  # against a logarithm of zero


_BOUNDING = frozenset({"clamp", "clamp_min"})


@immutable()
class Unfused:
    """The logarithm of a softmax or sigmoid that nothing else takes."""

    log: Operation
    inner: Operation
    steps: tuple[Operation, ...]  # between the two, outermost first: `+ 1e-8`, `1 - p`, a clamp

    @property
    def fused(self) -> str:
        """The name of the operation that computes both at once."""
        return "log_softmax" if self.inner.name == "softmax" else "logsigmoid"


def unfused(formula: Formula, log: Operation) -> Unfused | None:
    """The chain from a logarithm down to a softmax or sigmoid, each link taken by the next alone."""
    steps: list[Operation] = []
    taken = log
    while taken.operands:
        operand = _operand(formula, taken) if taken is not log else taken.operands[0]
        below = formula.of(operand)
        if below is None or [t.operation for t in formula.takings(below)] != [taken]:
            return None
        if below.name in ("softmax", "sigmoid"):
            alone = below.name == "sigmoid" and not steps
            # The complement of a sigmoid is that of `-x`; the complement of a softmax is no softmax.
            turned = below.name == "softmax" and any(step.name == "sub" for step in steps)
            if alone or turned or not below.operands or _is_own(formula, below.operands[0]):
                return None
            return Unfused(log, below, tuple(steps))
        if _operand(formula, below) is None or len(steps) > 2:
            return None
        steps.append(below)
        taken = below
    return None


def _is_own(formula: Formula, temp: Temp) -> bool:
    """A weight of a module's own: as small as it was made, whatever the batch; or a constant, without a graph."""
    made = formula.of(temp)
    return is_parameter(formula, temp) or (made is not None and made.name in torch_api.FACTORIES)


def _operand(formula: Formula, step: Operation) -> Temp | None:
    """What a step between the two takes, where it only bounds the probabilities or turns them over."""
    match step:
        case Operation(name="add", operands=(left, right)):
            return left if _is_small(formula, right) else right if _is_small(formula, left) else None
        case Operation(name="sub", operands=(left, right)):
            return right if formula.constant(left) == 1 else None
        case Operation(name=name, operands=(first, *_)) if name in _BOUNDING:
            return first
    return None


def _is_small(formula: Formula, temp: Temp) -> bool:
    """Is it a number against a logarithm of zero, as far as it is seen, or the smallest that a type has?"""
    value = usual(formula, temp)
    if isinstance(value, int | float):
        return abs(value) < _SMALL
    made = formula.made(temp)
    limits = formula.of(made.base) if isinstance(made, GetAttribute) else None
    return limits is not None and limits.name == "finfo"
