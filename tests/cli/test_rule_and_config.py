import json
from pathlib import Path

import pytest

from torchmemlint.config.options import OPTIONS

from .conftest import Run


@pytest.mark.parametrize("word", ["TML001", "tml001", "unused-ignore"])
def test_rule_by_code_or_name(run: Run, word: str) -> None:
    code, out, err = run("rule", word)
    assert (code, err) == (0, "")
    assert out.startswith("# unused-ignore (TML001)")


def test_all_rules(run: Run) -> None:
    code, out, _ = run("rule", "--all")
    assert code == 0
    assert "# unreadable-file (TML000)" in out
    assert "# serial-loader (TML401)" in out


def test_rule_as_json(run: Run) -> None:
    one = json.loads(run("rule", "TML002", "--output-format=json").out)
    assert (one["code"], one["name"], one["fix"]) == ("TML002", "unknown-code", "hint")
    assert "## What it does" in one["explanation"]
    assert len(json.loads(run("rule", "--all", "--output-format=json").out)) == 9


def test_a_family(run: Run) -> None:
    code, out, _ = run("rule", "tml1")
    assert code == 0
    assert out.startswith("# Graphs (TML1)\n\nAutograd graphs")
    assert [line.split()[1] for line in out.splitlines() if line.startswith("- **")] == ["**TML101", "**TML102"]
    assert "- **TML101 graph-accumulation** (error, stable): " in out
    assert [one["code"] for one in json.loads(run("rule", "TML2", "--output-format=json").out)] == ["TML201", "TML204"]


def test_rules(run: Run, project: Path) -> None:
    code, out, err = run("rules")
    assert (code, err) == (0, "")
    assert out.count("\n  TML") == 9
    assert "  TML204  no-grad-instead-of-inference-mode  advice   off\n" in out
    assert "Data loading (TML4)\n  TML401  serial-loader" in out
    assert run("rules", "TML1", "serial-loader").out.splitlines() == [
        "Graphs (TML1)",
        "  TML101  graph-accumulation  error    safe fix",
        "  TML102  graph-collection    error",
        "",
        "Data loading (TML4)",
        "  TML401  serial-loader       warning",
    ]
    (one,) = json.loads(run("rules", "TML201", "--output-format=json").out)
    assert (one["name"], one["fix"], one["default"], one["status"], one["since"]) == (
        "eval-without-no-grad", "unsafe", True, "stable", None,
    )  # fmt: skip
    wrong = run("rules", "TML9")
    assert (wrong.code, wrong.out) == (2, "")
    assert "Unknown rule selector `TML9`" in wrong.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("TML011",), "Did you mean `TML001`"),
        (("unusd-ignore",), "Did you mean `unused-ignore`"),
        ((), "--all"),
        (("TML001", "--all"), "--all"),
    ],
)
def test_wrong_rule_is_exit_2(run: Run, arguments: tuple[str, ...], message: str) -> None:
    code, out, err = run("rule", *arguments)
    assert (code, out) == (2, "")
    assert message in err


def test_config_lists_every_option(run: Run) -> None:
    code, out, _ = run("config")
    assert code == 0
    assert [line for line in out.splitlines() if line and not line.startswith(" ")] == [o.key for o in OPTIONS]


def test_config_explains_one(run: Run) -> None:
    assert 'Default: "warning"' in run("config", "fail-on").out
    assert list(json.loads(run("config", "exclude", "--output-format=json").out)) == ["exclude"]


def test_wrong_configuration_key_is_exit_2(run: Run) -> None:
    code, _, err = run("config", "fail-no")
    assert code == 2
    assert "Did you mean `fail-on`" in err


def test_version_and_help(run: Run) -> None:
    assert run("--version").out.startswith("torchmemlint ")
    assert "check" in run("--help").out
    assert "--unsafe-fixes" in run("check", "--help").out
