"""Modules that a trainer holds and does not train: reference policies, teachers, reward models.

Source: transformers' `Trainer.create_optimizer` optimises the parameters of `self.model`, the first argument of its
constructor; what else a subclass keeps in attributes gets no optimizer.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from torchmemlint.flow.facts import ModuleCall
from torchmemlint.flow.gradient_modes import trained_by_framework
from torchmemlint.flow.program import ClassInfo, Function
from torchmemlint.syntax.outline import dotted_text
from torchmemlint.syntax.source_module import Site

_TRAINED = frozenset({"model", "model_wrapped"})
_TELLING = frozenset({"parameters", "named_parameters", "train", "requires_grad_", "state_dict"})
_SUPER = m.Call(func=m.Attribute(value=m.Call(func=m.Name("super")) | m.Name(), attr=m.Name("__init__")))


def handed_over(call: ModuleCall) -> Site | None:
    """Where a trainer's constructor stores the called module, which nobody trains; None where somebody might."""
    function = call.scope.function
    owner, _, attribute = call.callee.rpartition(".")
    if function is None or function.cls is None or owner != "self" or attribute in _TRAINED:
        return None
    cls = function.cls
    if not (trained_by_framework(function) and _keeps_the_optimizer(cls)):
        return None
    if cls.methods_called_on(call.callee) & _TELLING:
        return None
    for ancestor in cls.ancestors():
        constructor = ancestor.methods.get("__init__")
        if constructor is not None and (site := _stored(constructor, attribute)) is not None:
            return site
    return None


def _keeps_the_optimizer(cls: ClassInfo) -> bool:
    """Does the trainer's own choice of what is optimised stand?"""
    return not any(name in ancestor.methods for ancestor in cls.ancestors() for name in ("create_optimizer", "train"))


def _stored(constructor: Function, attribute: str) -> Site | None:
    """`self.ref_model = ref_model`, where the parameter goes to no other constructor."""
    parameters = constructor.node.params
    given = {p.name.value for p in (*parameters.posonly_params, *parameters.params, *parameters.kwonly_params)}
    elsewhere = {name for call in m.findall(constructor.node, _SUPER) for name in _names(call)}
    found: Site | None = None
    for assign in m.findall(constructor.node, m.Assign()):
        assert isinstance(assign, cst.Assign)
        targets = [dotted_text(target.target) for target in assign.targets]
        if f"self.{attribute}" not in targets or not isinstance(assign.value, cst.Name):
            continue
        if assign.value.value in elsewhere:
            return None
        if assign.value.value in given:
            found = Site(constructor.piece, assign)
    return found


def _names(call: cst.CSTNode) -> Iterator[str]:
    assert isinstance(call, cst.Call)
    for argument in call.args:
        if isinstance(argument.value, cst.Name):
            yield argument.value.value
