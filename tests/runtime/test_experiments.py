"""The rules' experiments: that there is one for each, and that each shows what its rule says."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")

from click.testing import CliRunner

from torchmemlint.cli.main import cli
from torchmemlint.rules.registry import all_rules
from torchmemlint.runtime.experiments import table
from torchmemlint.runtime.experiments.base import Experiment, Size, measure
from torchmemlint.runtime.experiments.catalogue import EXPERIMENTS, WITHOUT, of_backend, of_rule
from torchmemlint.runtime.experiments.outcome import Effect, Figures, Outcome
from torchmemlint.runtime.host import private_bytes

SMALL = Size(width=64, depth=4, batch=32, steps=8)
COUNTED = [one for one in EXPERIMENTS if one.effect in (Effect.GROWTH, Effect.PEAK)]
ON_A_DEVICE_ONLY = {"TML406", "TML504", "TML505", "TML508", "TML702"}
"""Rules about what lies on the device although the host would do: on the host alone there is no difference."""
NOTHING_EXPECTED = {"ReLU out of place", "SiLU in place"}


def named(experiment: Experiment) -> str:
    return f"{experiment.code}: {experiment.title}"


def test_each_rule_has_an_experiment_or_a_reason() -> None:
    with_one = {experiment.code for experiment in EXPERIMENTS}
    assert {rule.code for rule in all_rules()} == with_one | WITHOUT.keys()
    assert not with_one & WITHOUT.keys()
    assert len({named(experiment) for experiment in EXPERIMENTS}) == len(EXPERIMENTS)


@pytest.mark.slow
@pytest.mark.parametrize("experiment", COUNTED, ids=named)
def test_counted_effects_show_on_the_host(experiment: Experiment) -> None:
    # Images are large already; autocast's copies of the weights have to be outweighed by activations.
    batch = {"TML301": 4, "TML311": 64, "TML603": 512}.get(experiment.code, SMALL.batch)
    outcome = measure(experiment, "cpu", replace(SMALL, batch=batch))
    assert outcome.saved is not None
    if experiment.code in ON_A_DEVICE_ONLY or experiment.title in NOTHING_EXPECTED:
        assert outcome.saved == 0
    else:
        assert outcome.saved > 0.01 * outcome.bad.peak


@pytest.mark.parametrize("code", ["TML406", "TML501", "TML502", "TML504", "TML505", "TML702"])
def test_what_only_a_device_shows(code: str) -> None:
    # What TML501's program makes on the host must outweigh what torch itself may keep there.
    size = {"TML502": None, "TML501": replace(SMALL, batch=2048)}.get(code, SMALL)
    outcome = measure(of_rule(code)[0], "simulated", size)
    assert outcome.saved is not None
    assert outcome.saved > 0
    assert outcome.backend.startswith("simulated")
    assert outcome.bad.seconds_per_step is None  # a simulation's time says nothing about a GPU's


@pytest.mark.slow
def test_workers_copy_what_they_read() -> None:
    if private_bytes() is None:
        pytest.skip("the system does not tell what a process has to itself")
    outcome = measure(of_rule("TML405")[0], "cpu", Size(batch=5_000, steps=8))
    assert outcome.saved is not None
    assert outcome.saved > 40_000 * 100  # a dict, a text and a number for each, copied by the worker that reads it


def test_workers_keep_their_samples() -> None:
    if private_bytes() is None:
        pytest.skip("the system does not tell what a process has to itself")
    outcome = measure(of_rule("TML110")[0], "cpu", Size(width=4096, batch=64, steps=16))
    assert outcome.saved is not None
    assert outcome.saved > 0.6 * 64 * 16 * 4096 * 4  # all samples, in one worker or the other


@pytest.mark.slow
def test_each_worker_takes_memory() -> None:
    if private_bytes() is None:
        pytest.skip("the system does not tell what a process has to itself")
    outcome = measure(of_rule("TML407")[0], "cpu")
    assert outcome.bad.worker_bytes is not None
    assert outcome.good.worker_bytes is not None
    assert outcome.bad.worker_bytes > 4 * outcome.good.worker_bytes


def test_a_running_loss_holds_exactly_its_graph() -> None:
    outcome = measure(of_rule("TML101")[0], "cpu", SMALL)
    rows, width, depth, classes = SMALL.batch, SMALL.width, SMALL.depth, 10
    features = rows * width * 4
    # Each layer's input and each GELU's; the classes' log-probabilities, the labels, and the loss's total weight.
    held = features * (1 + 2 * depth) + rows * classes * 4 + rows * 8 + 4
    assert outcome.bad.growth_per_step == held
    assert outcome.good.growth_per_step == 0


def test_an_outcome_survives_json() -> None:
    outcome = measure(of_rule("TML201")[0], "cpu", SMALL)
    assert Outcome.from_json(json.loads(json.dumps(outcome.to_json()))) == outcome


def figures(**given: float) -> Figures:
    return replace(Figures(1000, None, 0.0, 0, None, None, None), **given)  # type: ignore[arg-type]


def test_cells() -> None:
    growing = Outcome("TML101", "", Effect.GROWTH, "", figures(growth_per_step=2048.0), figures())
    assert table.change(growing) == "2.0 KiB/step → 0 B/step"
    assert table.share_of_peak(growing) == "-"
    smaller = Outcome("TML201", "", Effect.PEAK, "", figures(peak=4000), figures(peak=1000))
    assert table.change(smaller) == "3.9 KiB → 1000 B"
    assert table.share_of_peak(smaller) == "-75%"
    same = Outcome("TML401", "", Effect.TIME, "", figures(seconds_per_step=0.01), figures(seconds_per_step=0.0101))
    assert table.time_per_step(same) == "10.1 ms"
    unknown = Outcome("TML101", "", Effect.HOST_GROWTH, "", figures(), figures())
    assert table.change(unknown) == "?"
    assert unknown.saved is None


WAITING = {  # for a GPU: `tools/impact.py --backend cuda --missing`
    "cuda": {
        "an output on its own context",
        "a gradient with a graph at each point",
        "every other batch left out",
        "one token of each sequence",
        "a teacher in the student's graph",
        "words after the last token",
        "one word of each token",
        "a mask cast to truth values",
        "scores of each answer",
        "networks in reference cycles",
        "a hook for each batch",
        "pushed without a backward",
        "networks in the cache of a function",
        "predictions of all epochs in a metric",
        "networks of all folds in a list",
    }
}


def test_the_documentation_has_every_experiment() -> None:
    kept = json.loads((Path(__file__).parents[2] / "docs" / "impact.json").read_text(encoding="utf-8"))
    for backend, run in kept.items():
        wanted = [one.title for one in of_backend(backend) if one.title not in WAITING.get(backend, ())]
        assert [one["title"] for one in run["outcomes"]] == wanted


def test_a_rules_experiments_from_the_command_line() -> None:
    result = CliRunner().invoke(cli, ["verify", "--rule", "eval-without-no-grad", "--backend", "cpu"])
    assert result.exit_code == 0, result.output
    assert "measured on cpu" in result.output
    assert "TML201" in result.output
    assert re.search(r"\d MiB → \d", result.output)


def test_as_json() -> None:
    arguments = ["verify", "--rule", "TML202", "--backend", "cpu", "--output-format", "json"]
    (told,) = json.loads(CliRunner().invoke(cli, arguments).output)
    assert Outcome.from_json(told).code == "TML202"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rule", "TML000"], "no experiment: it is about files"),
        (["--rule", "TML999"], "Unknown rule"),
        (["--rule", "TML101", "train.py"], "either a script"),
        (["--rule", "TML101", "--backend", "rocm"], "rocm"),
        ([], "Missing argument 'SCRIPT'"),
    ],
)
def test_what_makes_no_sense_is_said(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(cli, ["verify", *arguments])
    assert result.exit_code == 2
    assert message in result.output
