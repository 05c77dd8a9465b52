"""Every code of the catalogue answers `torchmemlint rule CODE`.

Codes are stable: none goes away, or changes its name.
"""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from torchmemlint.cli.main import cli
from torchmemlint.rules.registry import by_code, by_name

FAMILIES = {  # "-": a code without a rule
    "0": "unreadable-file unused-ignore unknown-code",
    "1": "graph-accumulation graph-collection graph-on-attribute carried-hidden-state needless-retain-graph "
    "hook-keeps-graph undetached-generator deferred-microbatch-backward exception-keeps-graph "
    "memoised-samples tensor-on-ctx create-graph-cycle skipped-batch-keeps-graph view-keeps-storage",
    "2": "eval-without-no-grad no-op-grad-mode forward-then-detach no-grad-instead-of-inference-mode "
    "tensor-data-attribute untrained-module-in-graph gradient-mode-in-threads",
    "3": "out-of-place-activation inplace-hazard ineffective-inplace materialised-attention concat-in-loop "
    "repeat-instead-of-expand pairwise-broadcast dense-one-hot unfused-log-softmax implicit-reentrant-checkpoint "
    "full-vocabulary-logits",
    "4": "loader-without-workers loader-unpinned blocking-transfer loader-respawns-workers dataset-of-python-objects "
    "device-tensor-in-worker oversized-worker-pool",
    "5": "host-then-device empty-cache-in-loop gc-collect-in-loop load-without-map-location state-dict-copy-on-device "
    "checkpoint-kept-alive retired-memory-api results-collected-on-device allocator-config-too-late accidental-float64 "
    "cast-after-create growing-host-state varying-batch-lengths",
    "6": "gradients-zeroed-in-place step-locals-kept no-mixed-precision heavy-optimizer-state debug-mode-left-on",
    "7": "lightning-step-outputs trainer-eval-on-device",
    "8": "cycle-holds-module hook-never-removed hook-leftovers module-in-cache metric-never-reset "
    "device-tensor-to-process many-models-in-one-process",
}
CATALOGUE = {
    f"TML{family}{number:02}": name
    for family, names in FAMILIES.items()
    for number, name in enumerate(names.split(), start=0 if family == "0" else 1)
    if name != "-"
}


@pytest.mark.parametrize(("code", "name"), CATALOGUE.items())
def test_it_answers(code: str, name: str) -> None:
    result = CliRunner().invoke(cli, ["rule", code])
    assert result.exit_code == 0, result.output
    assert result.output.startswith(f"# {name} ({code})\n")
    assert CliRunner().invoke(cli, ["rule", name]).output == result.output


def test_nothing_else_is_registered() -> None:
    assert {code: rule.name for code, rule in by_code().items()} == CATALOGUE
    assert by_name().keys() == set(CATALOGUE.values())
