"""Fixes that may change results: the fixtures' own tests do not apply them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_fixtures import without_expectations
from torchmemlint.config.formatting import formatting
from torchmemlint.engine.checking import check_text
from torchmemlint.findings import Finding
from torchmemlint.fixes.apply import fix_text

FIXTURES = Path(__file__).parents[2] / "fixtures"
FROZEN = {
    "TML202-no-op-grad-mode/bad_module_attribute.py": (
        "        self.encoder.requires_grad_(False)",
        "        layer.requires_grad_(False)",
    ),
    "TML202-no-op-grad-mode/bad_module_attribute_of_name.py": ("\nmodel.requires_grad_(False)",),
}
PERSISTENT = {
    "TML404-loader-respawns-workers/bad_argparse.py": (
        "num_workers=args.workers, persistent_workers=args.workers > 0)",
        'kwargs = {"num_workers": 2, "batch_size": 4, "persistent_workers": True}',
    ),
    "TML404-loader-respawns-workers/bad_class.py": (
        "self.loader = DataLoader(Roots(), num_workers=3, persistent_workers=True)",
        "    loader = DataLoader(Roots(), num_workers=3, persistent_workers=True)",
    ),
    "TML404-loader-respawns-workers/bad_functions.py": (
        "        num_workers=8,\n        persistent_workers=True,\n    )",
        'DataLoader(Trees("val"), batch_size=32, num_workers=8, persistent_workers=True)',
    ),
    "TML404-loader-respawns-workers/bad_phases.py": (
        "DataLoader(Ferns(phase), num_workers=4, persistent_workers=True)",
    ),
    "TML404-loader-respawns-workers/bad_plain.py": (
        "DataLoader(Flowers(), batch_size=32, num_workers=4, persistent_workers=True)",
    ),
}
DETACHED = {
    "TML205-tensor-data-attribute/bad_clipped.py": (
        "            with torch.no_grad():\n                p.clamp_(-bound, bound)",
        "                p *= 0.999",
        "    with torch.no_grad():\n        for p in critic.parameters():\n            p.mul_(0.5)",
    ),
    "TML205-tensor-data-attribute/bad_copied.py": (
        "{loss.detach().item():.3f}",
        "            with torch.no_grad():\n                slow.copy_(rate * fast.data + (1 - rate) * slow.data)",
        "vector_norm(p.detach())",
    ),
    "TML205-tensor-data-attribute/bad_initialised.py": (
        "    with torch.no_grad():\n        layer.weight.normal_(0, 0.02)",
        "    nn.init.zeros_(layer.bias)",
        "        with torch.no_grad():\n            self.scale.uniform_(-1, 1)",
        "            self.centres[0] = 0",
    ),
}


@pytest.mark.parametrize(
    ("name", "written"),
    (FROZEN | PERSISTENT | DETACHED).items(),
    ids=lambda part: part if isinstance(part, str) else "",
)
def test_it_is_made_when_unsafe_fixes_are_asked_for(name: str, written: tuple[str, ...]) -> None:
    path = FIXTURES / name
    text = without_expectations(path.read_text())

    def check(text: str) -> list[Finding]:
        return check_text(text, path, frozenset({name[:6]}))

    findings = check(text)
    assert not fix_text(text, findings, check, unsafe=False).applied

    result = fix_text(text, findings, check, unsafe=True, formatting=formatting(path.parent))

    assert len(result.applied) == len(written)
    assert all(part in result.text and part not in text for part in written)
    assert check(result.text) == []
    compile(result.text, name, "exec", dont_inherit=True)
