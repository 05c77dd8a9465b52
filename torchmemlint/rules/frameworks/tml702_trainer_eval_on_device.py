"""TML702 trainer-eval-on-device."""

from __future__ import annotations

from torchmemlint.findings import Applicability, Finding, Fix, Severity
from torchmemlint.flow.fact.trainers import STEPS
from torchmemlint.rules.base import TellingRule
from torchmemlint.rules.told import Told


class TrainerEvalOnDevice(TellingRule):
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
    - The training arguments are not all known (from the command line, a file or a caller).
    - They say that predictions are not kept: `prediction_loss_only`, `batch_eval_metrics`, `predict_with_generate`
      (token ids, and no logits), or a CPU as the device.
    - Nothing evaluates: no evaluation strategy, no call of `evaluate` or `predict`.
    - The model predicts once for each example (`…ForSequenceClassification`), or it is not known what it predicts.
    - The trainer has its own way to evaluate.

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

    def tell(self, told: Told) -> Finding:
        """Say that predictions are collected, and what shows that they are large."""
        case = told.case
        links = [told.link(place, "predicts something for every token or pixel of an example") for place in case.graphs]
        if case.within is not None:
            links.append(told.link(case.within, f"the training arguments do not set `{STEPS}`"))
        return told.finding(
            self,
            f"`{told.text.partition('(')[0]}` collects its predictions for the whole evaluation set on the device:"
            f" it has a `compute_metrics`, and neither `{STEPS}` nor `preprocess_logits_for_metrics`",
            links,
            fix=_fix(told),
        )


def _fix(told: Told) -> Fix:
    call = told.call_at(told.case.within)
    if call is None:
        return Fix(f"Set `{STEPS}=8` in the training arguments", Applicability.HINT)
    given = call.argument(STEPS)
    edits = call.replacing(given, "8") if given is not None else call.adding(f"{STEPS}=8")
    return Fix(f"Set `{STEPS}=8`, and tune the number", Applicability.UNSAFE, edits)
