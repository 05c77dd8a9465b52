"""Presets: what each has, and what wins over it. Against the real rules."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from torchmemlint import check_source
from torchmemlint.cli.check import check
from torchmemlint.config.layers import read_layer
from torchmemlint.config.presets import BY_NAME, PRESETS
from torchmemlint.config.selection import ALWAYS, Selection, enabled
from torchmemlint.config.settings import resolve
from torchmemlint.findings import Severity
from torchmemlint.rules import registry

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def fake_rules() -> None:
    """The other tests of this folder have fake rules; these have the real ones."""


SERVED = """
import torch


@torch.no_grad()
def predict(model, batch):
    model.eval()
    return model(batch).argmax(-1).tolist()
"""


def codes(name: str) -> frozenset[str]:
    return BY_NAME[name].codes(registry.own())


DEFAULT = frozenset(rule.code for rule in registry.all_rules() if rule.on)


def test_the_command_line_knows_the_same_ones() -> None:
    (option,) = (one for one in check.params if one.name == "preset")
    assert tuple(option.type.choices) == tuple(BY_NAME)  # type: ignore[attr-defined]


def test_default_and_strict() -> None:
    assert codes("default") == DEFAULT == enabled([], registry.own())
    assert codes("strict") == {rule.code for rule in registry.all_rules()}
    assert {preset.name: preset.fail_on for preset in PRESETS if preset.fail_on is not Severity.WARNING} == {
        "strict": Severity.ADVICE
    }


def test_all_but_strict_are_told_of_unreadable_files_and_suppressions() -> None:
    assert all(codes(name) >= {"TML000", "TML001", "TML002"} for name in BY_NAME)


def test_leaks_only_has_the_rules_whose_experiments_grow() -> None:
    pytest.importorskip("torch")
    from torchmemlint.runtime.experiments.catalogue import EXPERIMENTS
    from torchmemlint.runtime.experiments.outcome import Effect

    growing = {one.code for one in EXPERIMENTS if one.effect is Effect.GROWTH}
    # What TML508 tells of grows for one pass only, and is advice. An attribute holds one graph for each object, and
    # Lightning keeps what it is given until the epoch's end.
    assert codes("leaks-only") - {"TML000", "TML001", "TML002"} == growing - {"TML508"} | {"TML103", "TML701"}


def test_leaks_only_gives_no_advice() -> None:
    severities = {rule.code: rule.severity for rule in registry.all_rules()}
    assert all(severities[code] is not Severity.ADVICE for code in codes("leaks-only"))


def test_training_adds_to_the_default() -> None:
    assert codes("training") - DEFAULT == {"TML602", "TML603", "TML604"}
    assert codes("training") >= DEFAULT


def test_inference_says_nothing_of_backwards() -> None:
    assert "TML204" in codes("inference")
    about_backward = {
        "TML104",
        "TML105",
        "TML107",
        "TML108",
        "TML111",
        "TML112",
        "TML113",
        "TML301",
        "TML302",
        "TML303",
        "TML309",
        "TML310",
        "TML505",
        "TML513",
    }
    about_backward |= {"TML601", "TML602", "TML603", "TML604", "TML701"}
    assert not codes("inference") & about_backward
    assert codes("inference") - DEFAULT == {"TML204"}
    assert DEFAULT - codes("inference") <= about_backward


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ({"preset": "leaks-only"}, codes("leaks-only")),
        ({"preset": "leaks-only", "extend-select": ["TML301"]}, codes("leaks-only") | {"TML301"}),
        ({"preset": "leaks-only", "ignore": ["TML101"]}, codes("leaks-only") - {"TML101"}),
        ({"preset": "leaks-only", "severity": {"TML101": "off"}}, codes("leaks-only") - {"TML101"}),
        ({"preset": "strict", "select": ["TML101"]}, {*ALWAYS, "TML101"}),
        ({"preset": "strict", "ignore": ["TML3", "TML4"]}, {c for c in codes("strict") if c[3] not in "34"}),
    ],
)
def test_what_a_configuration_says_beside_its_preset(table: dict[str, object], expected: set[str]) -> None:
    assert resolve(read_layer(table, "here"), ROOT / "nowhere", None).rules == expected


def test_what_fails_a_run() -> None:
    def fail_on(table: dict[str, object]) -> Severity:
        return resolve(read_layer(table, "here"), ROOT / "nowhere", None).fail_on

    assert fail_on({}) is Severity.WARNING
    assert fail_on({"preset": "strict"}) is Severity.ADVICE
    assert fail_on({"preset": "strict", "fail-on": "error"}) is Severity.ERROR
    assert fail_on({"preset": "training"}) is Severity.WARNING


def test_a_preset_of_the_command_line_starts_afresh() -> None:
    configured = Selection(("TML1",), (), ("TML101",), "strict")
    rules = registry.own()
    assert enabled([configured, Selection(preset="leaks-only")], rules) == codes("leaks-only")
    assert enabled([configured, Selection(None, (), ("TML102",), "leaks-only")], rules) == codes("leaks-only") - {
        "TML102"
    }
    assert enabled([configured, Selection(("TML2",), preset="leaks-only")], rules) == {
        *ALWAYS, *(rule.code for rule in registry.all_rules() if rule.code.startswith("TML2"))
    }  # fmt: skip


def test_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from torchmemlint.cli.main import main

    (tmp_path / "torchmemlint.toml").write_text('preset = "leaks-only"\nfail-on = "error"\n')
    (tmp_path / "a.py").write_text(SERVED)
    monkeypatch.chdir(tmp_path)
    for arguments, code, found in (
        ((), 0, []),
        (("--preset", "strict"), 1, ["TML204"]),
        (("--preset", "strict", "--fail-on", "warning"), 0, ["TML204"]),
        (("--preset", "strict", "--ignore", "TML204"), 0, []),
        (("--preset", "default"), 0, []),
        (("--preset", "nothing"), 2, None),
    ):
        capfd.readouterr()
        assert main(["a.py", "--output-format=json", *arguments]) == code, arguments
        out = capfd.readouterr().out
        assert found is None or [finding["code"] for finding in json.loads(out)] == found


def test_plugins_in_presets(tmp_path: Path) -> None:
    text = (ROOT / "tests/acme_rules.py").read_text()
    (tmp_path / "acme_on.py").write_text(text)
    rules = registry.known((str(tmp_path / "acme_on.py"),))
    assert {name for name in BY_NAME if "ACM101" in BY_NAME[name].codes(rules)} == {
        "default",
        "strict",
        "training",
        "inference",
    }
    off = tmp_path / "acme_off.py"
    off.write_text(text.replace("    def check", "    on = False\n\n    def check"))
    rules = registry.known((str(off),))
    assert {name for name in BY_NAME if "ACM101" in BY_NAME[name].codes(rules)} == {"strict"}


def test_in_the_api() -> None:
    text = SERVED
    assert check_source(text) == []
    assert [finding.code for finding in check_source(text, settings={"preset": "strict"})] == ["TML204"]
