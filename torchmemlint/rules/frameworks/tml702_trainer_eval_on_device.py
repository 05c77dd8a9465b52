"""TML702 trainer-eval-on-device."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.findings import Applicability, Finding, Fix, Severity
from torchmemlint.flow.facts import FileFacts, TrainerBuilt
from torchmemlint.flow.values import Constant, External, Value
from torchmemlint.rules.arguments import adding, node_of, replacing
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import Link, is_test, report

_STEPS = "eval_accumulation_steps"


class TrainerEvalOnDevice(Rule):
    """transformers' Trainer keeps the predictions for the whole evaluation set on the device.

    ## What it does
    Reports a `Trainer`, `Seq2SeqTrainer` or trl `SFTTrainer`, or a class of the project that derives from one, with a
    `compute_metrics`, whose model predicts something for every token or pixel of an example, and which has neither
    `eval_accumulation_steps` in its training arguments nor `preprocess_logits_for_metrics`.

    ## Why it costs memory
    With a `compute_metrics`, evaluation asks the model for its predictions and concatenates them, on the device, batch
    after batch; they are moved to the host when the last batch is done, or every `eval_accumulation_steps` batches. The
    logits of a language model take 4 bytes for each token and word of the vocabulary: with 512 tokens and 50,000 words
    that is 100 MB for one example. While two parts are concatenated, both stand beside the result.

    ## Example
    ```python
    trainer = Trainer(
        model=AutoModelForMaskedLM.from_pretrained(name),
        args=TrainingArguments("out", eval_strategy="epoch"),
        train_dataset=train,
        eval_dataset=test,
        compute_metrics=compute_metrics,
    )
    ```

    ## Use instead
    ```python
    trainer = Trainer(
        model=AutoModelForMaskedLM.from_pretrained(name),
        args=TrainingArguments("out", eval_strategy="epoch"),
        train_dataset=train,
        eval_dataset=test,
        compute_metrics=compute_metrics,  # of token ids now
        preprocess_logits_for_metrics=lambda logits, labels: logits.argmax(-1),
    )
    ```

    or, where the metric needs the logits, `TrainingArguments(..., eval_accumulation_steps=8)`.

    ## Fix safety
    Unsafe: `eval_accumulation_steps=8` is added where the training arguments stand in the same file. The metrics stay
    the same, evaluation stops every eight batches for the copy, and the predictions must fit into the host's memory;
    the number is to be tuned. Otherwise a hint.

    ## When it stays silent
    The training arguments are not all in view (from the command line, a file or a caller), or say that predictions are
    not kept: `prediction_loss_only`, `batch_eval_metrics`, `predict_with_generate` (token ids, and no logits), a host
    as the device. Nothing evaluates: no evaluation strategy, no call of `evaluate` or `predict`. The model predicts
    once for each example (`…ForSequenceClassification`), where the predictions are small, or it is not known. The
    trainer has its own way to evaluate.

    ## References
    - transformers 5.23.0, `trainer.py`: `Trainer.evaluation_loop`; `trainer_pt_utils.py`: `EvalLoopContainer`
    - [TrainingArguments.eval_accumulation_steps](https://huggingface.co/docs/transformers/main_classes/trainer#transformers.TrainingArguments)
    - [transformers#7232](https://github.com/huggingface/transformers/issues/7232),
      [transformers#15466](https://github.com/huggingface/transformers/issues/15466)
    """

    code = "TML702"
    name = "trainer-eval-on-device"
    severity = Severity.WARNING
    fix = Applicability.UNSAFE
    why = "the predictions for the whole evaluation set are collected on the device before they are moved to the host"

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield trainers that keep what they predict."""
        if is_test(facts):
            return
        for trainer in facts.trainers:
            if trainer.metrics and trainer.wide is not None and _keeps(trainer) and _evaluates(facts, trainer):
                yield self._finding(facts, trainer, (trainer.wide.site, trainer.wide.text))

    def _finding(self, facts: FileFacts, trainer: TrainerBuilt, wide: Link) -> Finding:
        links = [wide]
        if trainer.options_made is not None:
            links.append((trainer.options_made, f"the training arguments do not set `{_STEPS}`"))
        return report(
            self,
            facts,
            trainer.site,
            f"`{trainer.callee}` collects its predictions for the whole evaluation set on the device: it has a"
            f" `compute_metrics`, and neither `{_STEPS}` nor `preprocess_logits_for_metrics`",
            evidence=links,
            fix=_fix(facts, trainer),
        )


def _keeps(trainer: TrainerBuilt) -> bool:
    """Do predictions, as they come from the model, stay on the device until the end?"""
    options = dict(trainer.options)
    if not _is_off(dict(trainer.arguments).get("preprocess_logits_for_metrics")):
        return False
    names = (_STEPS, "prediction_loss_only", "batch_eval_metrics", "predict_with_generate", "use_cpu", "no_cuda")
    return all(_is_off(options.get(name)) for name in names)


def _is_off(value: Value | None) -> bool:
    """Is it not given, or None or False for certain?"""
    return value is None or (isinstance(value, Constant) and value.known and not value.value)


def _evaluates(facts: FileFacts, trainer: TrainerBuilt) -> bool:
    """Is it evaluated, while it trains or by a call in the file?"""
    function = trainer.scope.function
    methods = facts.methods if "." in trainer.target or function is None else function.outline.methods
    if methods.get(trainer.target, set()) & {"evaluate", "predict"}:
        return True
    options = dict(trainer.options)
    strategy = options.get("eval_strategy") or options.get("evaluation_strategy")
    match strategy:
        case None:
            return False
        case Constant(known=True, value=value):
            return value not in (None, False, "no")
        case External(qualified=qualified):
            return not qualified.endswith(".NO")
        case _:
            return False


def _fix(facts: FileFacts, trainer: TrainerBuilt) -> Fix:
    made = trainer.options_made
    setting = f"{_STEPS}=8"
    given = node_of(made, _STEPS) if made is not None else None
    set_later = given is None and _STEPS in dict(trainer.options)
    if made is None or made.piece.path != facts.path or set_later:
        return Fix(f"Set `{setting}` in the training arguments", Applicability.HINT)
    edits = replacing(made, given, "8") if given is not None else adding(facts, made, setting)
    return Fix(f"Set `{setting}`, and tune the number", Applicability.UNSAFE, edits)
