"""Trainers that collect what their model predicts on the device, over a whole evaluation.

`Trainer.evaluation_loop` does so unless `eval_accumulation_steps` says how often that is moved to the host. It asks the
model for more than its loss only where there is a `compute_metrics`.
Source: transformers 5.23.0, trainer.py: Trainer.evaluate, evaluation_loop; trainer_pt_utils.py: EvalLoopContainer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from torchmemlint.flow.domain import effects as fx
from torchmemlint.flow.domain.kinds import Kind, Special
from torchmemlint.flow.domain.refs import Key, Object
from torchmemlint.flow.domain.values import Value
from torchmemlint.flow.engine.machine import Engine
from torchmemlint.flow.fact.extents import wide_class
from torchmemlint.flow.fact.logs import Run
from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.ir.ops import Call, Constant, Function, Op, Operate
from torchmemlint.flow.models.hooks import functions
from torchmemlint.immutable import immutable

STEPS = "eval_accumulation_steps"
_STRATEGIES = ("eval_strategy", "evaluation_strategy")
_KEEPS_LITTLE = ("prediction_loss_only", "batch_eval_metrics", "predict_with_generate", "use_cpu", "no_cuda")
_SMALLER = "preprocess_logits_for_metrics"
_OWN_EVALUATION = frozenset({"prediction_step", "prediction_loop", "evaluation_loop", "evaluate", "predict"})
_ASKS = ("evaluate", "predict")
_IGNORED = -100  # the label of tokens that do not count

Given = Mapping[Key, Value]


@immutable()
class Collecting:
    """Where such a trainer is made, where its settings are that may say more, what shows that it predicts much.

    `asked` are the calls within which it evaluates.
    """

    made: Op
    settings: Op | None
    wide: Op
    asked: tuple[Op, ...]


def collecting(engine: Engine, run: Run) -> Iterator[Collecting]:
    """Yield the trainers of one run that collect predictions for every token or pixel, if all is known of them."""
    calls = [call for call in run.effects(fx.InvokeMethod) if call.name in ("train", *_ASKS)]
    for trainer in [r for r in run.state.heap.table if type(r) is Object]:
        name = _evaluates_as(engine, trainer)
        given = _given(run, trainer)
        if not isinstance(trainer.site, Op) or Special.NAMED in given:
            continue
        settings = _settings(engine, run, given.get("args"))
        if name is None or settings is None or not _is_off(given.get(_SMALLER)):
            continue
        made, options = settings
        asked_for = given.get("compute_metrics")
        metrics = list(functions(run.state, asked_for)) if asked_for is not None and not asked_for.open else []
        if not metrics or not all(_is_off(options.get(name)) for name in (STEPS, *_KEEPS_LITTLE)):
            continue
        wide = _predicts_much(engine, trainer, name, given, metrics)
        within = _ASKS if not _evaluates(options) else ("train", *_ASKS)
        asked = [call for call in calls if call.name in within and trainer in call.receiver.refs]
        if wide is not None and (asked or _evaluates(options)):
            yield Collecting(
                trainer.site, made, wide, tuple(call.point.chain()[0] for call in asked if call.point.chain())
            )


def _given(run: Run, trainer: Object) -> Given:
    """Return what a trainer is made with."""
    heap = run.state.heap
    handed = heap.get(trainer, Special.GIVEN)
    return heap.edges(next(iter(handed.refs))) if handed is not None and len(handed.refs) == 1 else heap.edges(trainer)


def _evaluates_as(engine: Engine, trainer: Object) -> str | None:
    """Return the class of a library by whose methods a trainer evaluates."""
    index = engine.index
    if trainer.kind is Kind.OPAQUE:
        is_known = isinstance(trainer.about, str) and trainer.about in index.contracts.names("trainers")
        return trainer.about if is_known else None
    if trainer.kind is not Kind.INSTANCE:
        return None
    methods = [method for cls in index.order(trainer.about.cls) for method in cls.methods.values()]
    if any(m.name in _OWN_EVALUATION or not m.mentions.isdisjoint({STEPS, _SMALLER}) for m in methods):
        return None
    return index.trainer(trainer.about.cls)


def _settings(engine: Engine, run: Run, value: Value | None) -> tuple[Op | None, Given] | None:
    """Return where a trainer's settings are made, if they may be changed there, and what they say; None: unknown."""
    if value is None or (value.known and value.constant is None):
        return None, {}
    (made, *others) = value.each() or (None,)
    if type(made) is not Object or others or value.open or not isinstance(made.site, Op):
        return None
    options = run.state.heap.edges(made)
    about = made.about if isinstance(made.about, str) else ""
    if about not in engine.index.contracts.names("trainer-arguments") or Special.NAMED in options:
        return None
    named = {argument.name for argument in made.site.arguments} if type(made.site) is Call else set()
    return made.site if STEPS in named or STEPS not in options else None, options


def _is_off(value: Value | None) -> bool:
    """Is it not given, or something false?"""
    return value is None or (value.known and not value.constant and not value.refs)


def _evaluates(options: Given) -> bool:
    """Does a trainer with these settings evaluate while it trains?"""
    strategy = next((options[name] for name in _STRATEGIES if name in options), None)
    if strategy is None:
        return False
    if strategy.known:
        return strategy.constant not in (None, False, "no")
    return bool(strategy.refs) and not any(r.symbolic or str(r).find(".NO") >= 0 for r in strategy.refs)


def _predicts_much(engine: Engine, trainer: Object, name: str, given: Given, metrics: list[Function]) -> Op | None:
    """Return what shows that the model predicts something for every token or pixel, and not once for each example."""
    wide = engine.index.contracts.names("wide-outputs")
    if name in wide and isinstance(trainer.site, Op):
        return trainer.site
    for model in given["model"].refs if "model" in given else ():
        if type(model) is Object and model.kind is Kind.MODULE and isinstance(model.about, str):
            is_wide = wide_class(engine.index.contracts, model) is not None
            return model.site if is_wide and isinstance(model.site, Op) else None
    return next((op for function in metrics for op in _ignoring(function)), None)


def _ignoring(function: Function) -> Iterator[Op]:
    """Yield where a function speaks of the label of tokens that do not count."""
    constants: dict[int, object] = {}
    for op in operations(function.body):
        if type(op) is Constant:
            constants[op.dst] = op.value
            if op.value == _IGNORED:
                yield op
        elif type(op) is Operate and (op.operator, len(op.operands)) == ("-", 1):
            yield from (op for operand in op.operands if constants.get(operand) == -_IGNORED)
    for inner in function.nested:
        yield from _ignoring(inner)
