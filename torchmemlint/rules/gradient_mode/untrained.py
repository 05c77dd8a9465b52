"""Modules that a trainer holds and does not train: reference policies, teachers, reward models.

Source: transformers' `Trainer.create_optimizer` optimises the parameters of `self.model`, the first argument of its
constructor; what else a subclass keeps in attributes gets no optimizer.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchmemlint.flow.facts import ModuleCall
from torchmemlint.flow.gradient_modes import trained_by_framework
from torchmemlint.flow.program import ClassInfo, Function
from torchmemlint.syntax.outline import dotted_text
from torchmemlint.syntax.source_module import Site
from torchmemlint.syntax.walking import inside

_TRAINED = frozenset({"model", "model_wrapped"})
_TELLING = frozenset({"parameters", "named_parameters", "train", "requires_grad_", "state_dict"})


def handed_over(call: ModuleCall) -> Site | None:
    """Where a trainer's constructor stores the called module, which nobody trains; None where somebody might."""
    function = call.scope.function
    owner, _, attribute = call.callee.rpartition(".")
    if function is None or function.cls is None or owner != "self" or attribute in _TRAINED:
        return None
    cls = function.cls
    if cls.is_module:
        return None  # a Lightning module's attributes are parts of it, and trained with it
    if not (trained_by_framework(function) and _is_trainer(cls) and _keeps_the_optimizer(cls)):
        return None
    if cls.methods_called_on(call.callee) & _TELLING:
        return None
    return given_to_constructor(cls, attribute)


def given_to_constructor(cls: ClassInfo, attribute: str) -> Site | None:
    """Where a constructor stores an argument of its own under this attribute, and gives it to nobody else."""
    for ancestor in cls.ancestors():
        constructor = ancestor.methods.get("__init__")
        if constructor is not None and (site := _stored(constructor, attribute)) is not None:
            return site
    return None


def _is_trainer(cls: ClassInfo) -> bool:
    """Is it a Trainer, whose `compute_loss` is called (other frameworks choose otherwise what is optimised)?"""
    return cls.program.contracts.overrides("called-with-gradients", "compute_loss", cls.base_names())


def _keeps_the_optimizer(cls: ClassInfo) -> bool:
    """Does the trainer's own choice of what is optimised stand?"""
    return not any(name in ancestor.methods for ancestor in cls.ancestors() for name in ("create_optimizer", "train"))


def _stored(constructor: Function, attribute: str) -> Site | None:
    """`self.ref_model = ref_model`, where the parameter goes to no other constructor."""
    parameters = constructor.node.params
    given = {p.name.value for p in (*parameters.posonly_params, *parameters.params, *parameters.kwonly_params)}
    nodes = list(inside(constructor.node))
    elsewhere = {name for node in nodes if _calls_constructor(node) for name in _names(node)}
    found: Site | None = None
    for assign in nodes:
        if not isinstance(assign, cst.Assign):
            continue
        targets = [dotted_text(target.target) for target in assign.targets]
        if f"self.{attribute}" not in targets or not isinstance(assign.value, cst.Name):
            continue
        if assign.value.value in elsewhere:
            return None
        if assign.value.value in given:
            found = Site(constructor.piece, assign)
    return found


def _calls_constructor(node: cst.CSTNode) -> bool:
    """`super().__init__(...)`, `Base.__init__(self, ...)`."""
    match node:
        case cst.Call(func=cst.Attribute(value=cst.Call(func=cst.Name("super")), attr=cst.Name("__init__"))):
            return True
        case cst.Call(func=cst.Attribute(value=cst.Name(), attr=cst.Name("__init__"))):
            return True
    return False


def _names(call: cst.CSTNode) -> Iterator[str]:
    assert isinstance(call, cst.Call)
    for argument in call.args:
        if isinstance(argument.value, cst.Name):
            yield argument.value.value
