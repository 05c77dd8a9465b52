"""TML513 varying-batch-lengths."""

from __future__ import annotations

from collections.abc import Iterator

from torchmemlint.doubts import Doubt
from torchmemlint.findings import Applicability, Finding, Fix
from torchmemlint.flow.fact.formulas import Formula
from torchmemlint.flow.facts import FileFacts
from torchmemlint.flow.ir.blocks import operations
from torchmemlint.flow.ir.ops import Call, CallMethod
from torchmemlint.rules.base import Rule
from torchmemlint.rules.findings import is_test, report_operation, written

_COLLATORS = ("DataCollatorWithPadding", "DataCollatorForSeq2Seq", "DataCollatorForTokenClassification")
_PADDING = ("pad_sequence", "padding=True", 'padding="longest"', "padding='longest'", *_COLLATORS)
_WORDS = frozenset({"pad_sequence", "padding", *_COLLATORS})
_OF_TOKENIZERS = frozenset({"return_tensors", "truncation", "return_attention_mask", "text_target"})
_TRAINING = ("backward", "Trainer", "Seq2SeqTrainer")
_RUNNING = ("no_grad", "inference_mode")
_LOADING = ("collate_fn", "data_collator")
_SETTING = "expandable_segments"


class VaryingBatchLengths(Rule):
    """Batches are padded to their own longest sequence, and no segment can grow."""

    def check(self, facts: FileFacts) -> Iterator[Finding]:
        """Yield the first place of a project at which a batch is padded."""
        if is_test(facts) or not _is_asked(facts):
            return
        found = (op for formula in facts.formulas(frozenset(), _WORDS) for op in _padding(formula))
        for op in sorted(found, key=lambda one: one.span)[:1]:
            yield report_operation(
                self,
                facts,
                op,
                f"`{written(facts, op, 50)}` pads each batch to its own length: cached blocks do not fit the next one",
                evidence=[(op, "each new length needs blocks of another size, and the old ones stay reserved")],
                fix=Fix("Start the program with PYTORCH_ALLOC_CONF=expandable_segments:True", Applicability.HINT),
                doubts=(Doubt.ENVIRONMENT,),
            )


def _is_asked(facts: FileFacts) -> bool:
    """Does the project train with an allocator that nobody set, and is this its first file that pads for a training?"""
    project, text = facts.program.project, facts.source.text
    if not any(word in text for word in _PADDING):
        return False
    if project is None:
        return any(word in text for word in _TRAINING) and _SETTING not in text

    def naming(*words: str) -> set[str]:
        found = [project.mentioning(word, facts.path) for word in words]
        return {str(path) for files in found if files is not None for path in files}

    training = naming(*_TRAINING)
    padding = naming(*_PADDING) & (training | naming(*_LOADING) - naming(*_RUNNING))
    return bool(training) and str(facts.path) == min(padding, default="") and not naming(_SETTING)


def _padding(formula: Formula) -> Iterator[Call | CallMethod]:
    """The calls that pad to the longest of what they are given."""
    for op in operations(formula.function.body):
        if isinstance(op, Call | CallMethod) and _pads(formula, op, formula.called(op)):
            yield op


def _pads(formula: Formula, op: Call | CallMethod, name: str) -> bool:
    given = {one.name: formula.constant(one.temp) for one in op.arguments if one.name}
    if name.endswith("nn.utils.rnn.pad_sequence"):
        return True
    if "pad_to_multiple_of" in given or (isinstance(op, CallMethod) and op.name == "from_pretrained"):
        return False
    if name.startswith("transformers.") and name.rpartition(".")[2] in _COLLATORS:
        return "max_length" not in given and given.get("padding", True) in (True, "longest")
    return given.get("padding") in (True, "longest") and not _OF_TOKENIZERS.isdisjoint(given)
