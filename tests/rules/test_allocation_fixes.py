"""Unsafe fixes of the rules on allocation and the training step: the fixtures' own tests do not apply them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_fixtures import without_expectations
from torchmemlint.config.formatting import formatting
from torchmemlint.engine.checking import check_text
from torchmemlint.findings import Finding
from torchmemlint.fixes.apply import fix_text

FIXTURES = Path(__file__).parents[2] / "fixtures"
WRITTEN = {
    "TML505-state-dict-copy-on-device/bad_best_epoch.py": (
        'best_state = {name: value.to("cpu", copy=True) for name, value in model.state_dict().items()}',
        'self.best_weights = {name: value.to("cpu", copy=True) for name, value in self.network.state_dict().items()}',
        '{key: value.detach().to("cpu", copy=True) for key, value in model.state_dict().items()}',
    ),
    "TML510-accidental-float64/bad_numpy_default.py": (
        "torch.from_numpy(np.random.randn(*signal.shape)).float().to(device)",
        "torch.tensor(mask, dtype=torch.float32).to(device)",
        "(torch.from_numpy(np.ones((rows, 1000))) - mask).float()",
        'device="cuda", dtype=torch.float32)',
        "grid.float().cuda(non_blocking=True)",
    ),
    "TML510-accidental-float64/bad_cast_there.py": ("torch.from_numpy(padded).float().to(device)",),
    "TML601-gradients-zeroed-in-place/bad_explicit.py": (
        "        optimizer.zero_grad(set_to_none=True)",
        "            optimizer.zero_grad(True)",
        "self.generator.zero_grad(set_to_none=True)",
        "solver.zero_grad(set_to_none=True)",
    ),
    "TML601-gradients-zeroed-in-place/bad_by_hand.py": (
        "parameter.grad = None",
        "weight.grad = None",
        "p.grad = None",
    ),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_it_is_made_when_unsafe_fixes_are_asked_for(name: str) -> None:
    path = FIXTURES / name
    text = without_expectations(path.read_text())

    def check(text: str) -> list[Finding]:
        return check_text(text, path, frozenset({name[:6]}))

    findings = check(text)
    assert not fix_text(text, findings, check, unsafe=False).applied

    result = fix_text(text, findings, check, unsafe=True, formatting=formatting(path.parent))

    assert len(result.applied) == len(WRITTEN[name])
    assert all(part in result.text and part not in text for part in WRITTEN[name])
    assert check(result.text) == []


@pytest.mark.parametrize(
    ("name", "written"),
    [
        # `cuda(None)` is a GPU, `device=None` the host.
        ("bad_perhaps_no_gpu", ("torch.zeros(rows, columns).cuda(self.gpu)", "torch.ones(rows, columns, device=0)")),
        (
            "bad_shape_is_a_tuple",
            (
                "torch.zeros((self.rows, self.columns), device=self.device)",
                "torch.ones((x.shape[0], x.shape[1]), dtype=torch.bool, device=self.device)",
            ),
        ),
    ],
)
def test_where_a_tensor_is_made(name: str, written: tuple[str, ...]) -> None:
    path = FIXTURES / "TML501-host-then-device" / f"{name}.py"

    def check(text: str) -> list[Finding]:
        return check_text(text, path, frozenset({"TML501"}))

    text = path.read_text()
    fixed = "".join(fix_text(text, check(text), check, unsafe=False).text.split())  # however it is laid out
    assert [line for line in written if "".join(line.split()) not in fixed] == []
