"""TML206's fix for modules that a trainer holds and does not train."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from torchmemlint.engine.checking import check_text
from torchmemlint.findings import Applicability, Finding
from torchmemlint.fixes.apply import fix_text

_FIXTURES = Path(__file__).parents[2] / "fixtures" / "TML206-untrained-module-in-graph"
_BOTH = """
import torch.nn.functional as F
from torch import nn
from transformers import PreTrainedModel, Trainer
import torch

class Distiller(Trainer):
    def __init__(self, model: PreTrainedModel, teacher: nn.Module, **kwargs):
        super().__init__(model, **kwargs)
        self.teacher = teacher

    def compute_loss(self, model: PreTrainedModel, inputs, return_outputs=False):
        loss = F.mse_loss(model(inputs["ids"])[0], self.teacher(inputs["ids"])[0])
        return loss
"""


def _check(text: str) -> list[Finding]:
    return check_text(text, Path("trainer.py"), frozenset({"TML206"}))


@pytest.mark.parametrize("name", ["bad_trainer_parts.py", "bad_trainer_reference.py"])
def test_the_fix_turns_gradients_off_around_the_held_module_alone(name: str) -> None:
    text = (_FIXTURES / name).read_text()
    found = _check(text)
    assert found
    assert all(finding.fix is not None for finding in found)
    fixed = fix_text(text, found, _check, unsafe=True).text
    ast.parse(fixed)
    assert fixed.count("with torch.no_grad():") == text.count("with torch.no_grad():") + len(found)
    assert _check(fixed) == []


def test_a_statement_that_runs_the_trained_model_too_has_only_a_hint() -> None:
    (finding,) = _check(_BOTH)
    assert "`self.teacher(" in finding.message
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.HINT
    assert not finding.fix.edits
    assert "needs gradients" in finding.fix.message
