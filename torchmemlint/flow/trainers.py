"""transformers' Trainer: what it is built with, and what that means for its evaluation.

`Trainer.evaluation_loop` collects what the model predicts on the device, over the whole evaluation set, unless
`eval_accumulation_steps` says how often it is moved to the host. It asks the model for more than its loss only where
there is a `compute_metrics`.
Source: transformers 5.23.0, trainer.py: Trainer.evaluate, evaluation_loop; trainer_pt_utils.py: EvalLoopContainer.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchmemlint.flow.arguments import Arguments
from torchmemlint.flow.facts import TrainerBuilt
from torchmemlint.flow.interpreter import Interpreter
from torchmemlint.flow.program import ClassInfo
from torchmemlint.flow.values import Constant, FunctionValue, Known, ModuleValue, Partial, Step, Value
from torchmemlint.syntax.outline import dotted_text
from torchmemlint.syntax.source_module import Site
from torchmemlint.syntax.text import text_of
from torchmemlint.syntax.walking import children

ROLE = "training arguments"
OPTIONS = (
    "eval_accumulation_steps prediction_loss_only batch_eval_metrics predict_with_generate eval_strategy "
    "evaluation_strategy do_eval use_cpu no_cuda"
).split()
_POSITIONAL = ("model", "args", "data_collator", "train_dataset", "eval_dataset")  # the same in all releases
_OWN_EVALUATION = frozenset({"prediction_step", "prediction_loop", "evaluation_loop", "evaluate", "predict"})
_OWN_ACCUMULATION = frozenset({"preprocess_logits_for_metrics", "eval_accumulation_steps", "batch_eval_metrics"})


def settings(it: Interpreter, node: cst.Call, qualified: str, arguments: Arguments) -> Value:
    """`TrainingArguments(...)`: an object whose attributes are what it is given."""
    return Known(ROLE, it.oid(node, it.frame.path), qualified, it.site(node), arguments.pairs())


def built(it: Interpreter, node: cst.Call, qualified: str, arguments: Arguments) -> None:
    """`Trainer(...)`: a fact, where it is known what it is given."""
    if not it.recording or arguments.unknown_keywords or arguments.unknown_positional:
        return
    named = {_POSITIONAL[int(n)] if n.isdigit() and int(n) < 5 else n: value for n, value in arguments.pairs()}
    if any(name.isdigit() for name in named):
        return
    given = named.get("args")
    options = _settings(it, given)
    if options is None:
        return
    wide = _predicts_much(it, qualified, named, it.site(node))
    it.facts.trainers.append(
        TrainerBuilt(
            it.site(node),
            it.scope,
            text_of(node.func),
            tuple(named.items()),
            tuple(options.items()),
            given.made if isinstance(given, Known) else None,
            _target(it),
            _has_metrics(it, node, named.get("compute_metrics")),
            wide,
        )
    )


def subclass_built(it: Interpreter, node: cst.Call, cls: ClassInfo, arguments: Arguments) -> None:
    """A project class that derives from the Trainer, and evaluates as it does."""
    trainers = it.contracts.names("trainers")
    base = next((name for name in cls.external_bases() if name in trainers), None)
    if base is None:
        return
    for ancestor in cls.ancestors():
        if _OWN_EVALUATION & ancestor.methods.keys() or _OWN_ACCUMULATION & ancestor.outline.names:
            return
    built(it, node, base, arguments)


def _settings(it: Interpreter, value: Value | None) -> dict[str, Value] | None:
    """The training arguments by name, as they are when the trainer is built; None where they are not all known."""
    if value is None or (isinstance(value, Constant) and value.known and value.value is None):
        return {}
    if not isinstance(value, Known) or value.role != ROLE or value.made is None:
        return None
    found = dict(value.arguments)
    if "**" in found or "*" in found:
        return None
    for name in OPTIONS:
        slot = it.state.heap.get((value.oid, name))
        if slot is not None:
            found[name] = slot
    return found


def _target(it: Interpreter) -> str:
    """What the trainer is called from here on."""
    statement = it.frame.statement
    match statement.node if statement is not None else None:
        case cst.Assign(targets=[target]):
            return dotted_text(target.target)
        case cst.AnnAssign(target=target):
            return dotted_text(target)
    return ""


def _has_metrics(it: Interpreter, node: cst.Call, value: Value | None) -> bool:
    """Is it certain that there is a `compute_metrics`?"""
    if isinstance(value, FunctionValue | Partial):
        return True
    return any(
        argument.keyword is not None
        and argument.keyword.value == "compute_metrics"
        and isinstance(argument.value, cst.Lambda)
        for argument in node.args
    )


def _predicts_much(it: Interpreter, qualified: str, named: dict[str, Value], site: Site) -> Step | None:
    """What shows that the model predicts something for every token or pixel, and not once for each example."""
    wide = it.contracts.names("wide-outputs")
    if qualified in wide:
        return Step(site, "trains a language model: it predicts a logit for each word of the vocabulary, at each token")
    model = named.get("model")
    if isinstance(model, ModuleValue) and model.made is not None:
        owner, _, last = model.qualified.rpartition(".")
        name = owner if last[:1].islower() else model.qualified
        if name in wide:
            shown = name.rpartition(".")[2]
            return Step(model.made, f"a `{shown}` predicts something for every token or pixel of an example")
        if model.qualified:
            return None
    metrics = named.get("compute_metrics")
    if isinstance(metrics, Partial):
        metrics = metrics.target
    if isinstance(metrics, FunctionValue):
        ignored = next(_ignored_labels(metrics.function.node), None)
        if ignored is not None:
            place = Site(metrics.function.piece, ignored)
            return Step(place, "labels of -100 are left out: there is a prediction for every token or pixel")
    return None


def _ignored_labels(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The places in a function that speak of -100, the label of tokens that do not count."""
    match node:
        case cst.UnaryOperation(operator=cst.Minus(), expression=cst.Integer(value="100")):
            yield node
        case _:
            for child in children(node):
                yield from _ignored_labels(child)
