"""Optimizers: who holds which parameters, and when they step."""

from __future__ import annotations

from torchmemlint.flow.domain.effects import Point, Step
from torchmemlint.flow.domain.frame import CallSite, Frame
from torchmemlint.flow.domain.refs import Kind, Object
from torchmemlint.flow.domain.values import PLAIN, UNKNOWN, Value, of
from torchmemlint.flow.models import gradients


def construct(site: CallSite, qualified: str) -> Value:
    """Return a new optimizer."""
    made = Object.of(Kind.OPTIMIZER, site.point.site, site.point.context, qualified)
    gradients.use_of_all(site.frame, site.state, site.arguments.all(), site.point)
    site.state.heap.put(made, "param_groups", site.value(0, "params"))
    return of(made)


def method(site: CallSite, target: Object, name: str) -> Value:
    """Return the value of an optimizer's method."""
    if name == "step" and site.arguments.all():
        closure = site.value(0, "closure")
        if closure.refs:
            step(site.frame, of(target), name, site.point)
            return site.call(closure)
    if name in ("step", "zero_grad"):
        step(site.frame, of(target), name, site.point)
        return PLAIN
    return UNKNOWN


def step(frame: Frame, optimizer: Value, name: str, point: Point) -> None:
    """Log a step or zero_grad."""
    frame.log(Step(point, optimizer, name))
