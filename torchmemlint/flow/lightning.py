"""Lightning's contract: what becomes of the results of `training_step`.

With automatic optimization the returned loss (or the entry "loss" of a returned dict) is differentiated right after the
step. The other entries are kept until the epoch ends where the class has a `training_epoch_end(self, outputs)`, which
Lightning had until version 2.
Source: pytorch_lightning 1.9, loops/optimization/optimizer_loop.py (`ClosureResult`) and loops/epoch/
training_epoch_loop.py; until 1.5 the extras were detached, with a warning that this would end.
"""

from __future__ import annotations

import ast

from torchmemlint.flow import containers
from torchmemlint.flow.facts import StepOutput, Use
from torchmemlint.flow.interpreter import Frame, Interpreter
from torchmemlint.flow.program import Function
from torchmemlint.flow.replacing import replace
from torchmemlint.flow.values import Container, Tensor, Unknown, Value
from torchmemlint.syntax.source_module import Site

STEP = "training_step"
EPOCH_END = "training_epoch_end"
_STEP_END = "training_step_end"  # what it makes of the step's results is kept in their place
_TURN = "optimizer_idx"
_TAKEN_BY_LIGHTNING = frozenset({"[loss]", "[hiddens]"})
_MANUAL = frozenset({"automatic_optimization", "manual_backward"})


def is_step(function: Function | None) -> bool:
    """Is it the `training_step` of a LightningModule?"""
    return function is not None and function.name == STEP and _is_in_lightning(function)


def takes_turns(function: Function | None) -> bool:
    """Does it run once for each optimizer, with the parameters of all others switched off?

    Until version 2, Lightning did so in steps that take an `optimizer_idx`. Where a method yields its losses one by
    one, the step takes the next of them each time.
    Source: pytorch_lightning 1.9, loops/optimization/optimizer_loop.py (`_run_optimization` calls `toggle_optimizer`).
    """
    if function is None or function.cls is None or not _is_in_lightning(function):
        return False
    if any(isinstance(node, ast.Yield | ast.YieldFrom) for node in function.outline.nodes):
        return True
    step = function.cls.method(STEP)
    return step is not None and step.syntax is not None and any(a.arg == _TURN for a in step.syntax.args.args)


def _is_in_lightning(function: Function) -> bool:
    """Is it a method of a LightningModule?"""
    bases = function.cls.base_names() if function.cls is not None else ()
    return any(base.rpartition(".")[2] == "LightningModule" for base in bases)


def runs_in_step(function: Function | None) -> bool:
    """Is it a `training_step`, or a method that the `training_step` of its class calls on itself?"""
    if function is None or function.cls is None:
        return False
    if is_step(function):
        return True
    step = function.cls.method(STEP)
    return is_step(step) and step is not None and f"self.{function.name}" in step.outline.called


def leave(it: Interpreter, function: Function, frame: Frame) -> None:
    """The walk of a `training_step` has ended: what Lightning does with each of its results."""
    if not is_step(function):
        return
    automatic = not any(_MANUAL & cls.outline.names for cls in function.cls.ancestors()) if function.cls else False
    state = it.state
    for value, left, site in zip(frame.returns, frame.return_states, frame.return_sites, strict=True):
        it.state = left
        if automatic:
            _differentiate(it, frame, _loss(it, value), site)
        _keep(it, function, value, site)
    it.state = state


def _loss(it: Interpreter, value: Value) -> Value | None:
    if isinstance(value, Container):
        loss = it.state.heap.get((value.oid, "[loss]")) if value.kind == "dict" else None
        if not isinstance(loss, Tensor | Unknown):
            return loss
        # The dict is kept as well as returned: what is differentiated was not taken out of where it is kept.
        kept = {origin for origin in loss.origins if it.kept_whole.get(origin) == value.oid}
        return replace(loss, origins=loss.origins - kept) if kept else loss
    return value if isinstance(value, Tensor | Unknown) else None


def _differentiate(it: Interpreter, frame: Frame, loss: Value | None, site: Site) -> None:
    if loss is None:
        return
    it.use(loss, Use.DIFFERENTIATED)
    it.prove(loss, site)
    for origin in it.deep_origins(loss):
        it.facts.spent.setdefault(origin, []).append((site, frame.loops))


def _keep(it: Interpreter, function: Function, value: Value, returned: Site) -> None:
    """The extras beside the loss, for `training_epoch_end`."""
    if function.cls is None or not isinstance(value, Container) or value.kind != "dict":
        return
    hook = function.cls.method(EPOCH_END)
    if hook is None or function.cls.method(_STEP_END) is not None:
        return
    for key, element, place in list(containers.entries(it, value)):
        if key not in _TAKEN_BY_LIGHTNING and place is not None:
            for tensor, site in containers.graph_parts(it, element, place):
                it.facts.step_outputs.append(StepOutput(site, it.scope, returned, key[1:-1], tensor, hook))
