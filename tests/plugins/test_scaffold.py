"""`torchmemlint new-rule`, and the helpers for the tests of plugins."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import get_type_hints

import pytest

from torchmemlint import scaffold
from torchmemlint.flow import facts
from torchmemlint.rules.registry import by_code
from torchmemlint.testing import Expected, check_fixture, expectations, fixtures_in

from .conftest import PROGRAM, Run, rule

ROOT = Path(__file__).resolve().parents[2]
SOURCES = "torchmemlint-acm/src/torchmemlint_acm"


def test_what_is_made_passes_its_own_tests(project: Path, run: Run) -> None:
    outcome = run("new-rule", "acm101", "unbounded-history")
    assert outcome.code == 0
    made = {Path(line) for line in outcome.out.splitlines()}
    assert Path(SOURCES, "acm101_unbounded_history.py") in made
    assert all(path.is_file() for path in made)
    assert run("new-rule", "ACM102", "other-history", "torchmemlint-acm").code == 0
    programs = fixtures_in("torchmemlint-acm/fixtures")
    assert len(programs) == 4
    for path in programs:
        check_fixture(path, select=[path.parent.name[:6]], plugins=[SOURCES], unsafe=True)
    with pytest.raises(AssertionError, match="surplus  line 9: ACM102"):
        check_fixture(programs[0], select=["ACM"], plugins=[SOURCES])


def test_called_again_in_its_folder_it_adds_a_rule(project: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("new-rule", "ACM101", "unbounded-history").code == 0
    monkeypatch.chdir(project / "torchmemlint-acm")
    code, _, err = run("new-rule", "ACM102", "other-history")
    assert code == 0
    assert Path("src/torchmemlint_acm/acm102_other_history.py").is_file()
    assert not Path("torchmemlint-acm").exists()
    assert "pip install -e '.[test]'" in err


def test_what_is_made_is_clean_and_typed(project: Path, run: Run) -> None:
    assert run("new-rule", "ACM101", "unbounded-history").code == 0
    lint = ["ruff", "check", "--isolated", "--select=E,F,I,UP,B", "--line-length=120"]
    for command in (lint, ["ruff", "format", "--isolated", "--line-length=120", "--check"]):
        done = subprocess.run(
            [sys.executable, "-m", *command, "torchmemlint-acm"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--follow-imports=silent",
        f"{SOURCES}/acm101_unbounded_history.py",
    ]
    done = subprocess.run(command, env={"MYPYPATH": str(ROOT), "PATH": ""}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ACM1", "some-name"), "ACM1: a code is capital letters and three digits"),
        (("ACM101", "Some Name"), "Some Name: a name is words in small letters"),
        (("TML101", "some-name"), "TML101 graph-accumulation is a rule of torchmemlint"),
        (("ACM101", "graph-accumulation"), "TML101 graph-accumulation is a rule of torchmemlint"),
        (("TML891", "some-name"), "rules of a plugin begin with letters of their own"),
        (("ALL101", "some-name"), "rules of a plugin begin with letters of their own"),
        (("ACM101", "some-name", "."), "it holds other things than a plugin"),
        (("ACM101",), "Missing argument 'NAME'"),
    ],
)
def test_what_cannot_be_made(project: Path, run: Run, arguments: tuple[str, ...], message: str) -> None:
    before = sorted(project.rglob("*"))
    code, out, err = run("new-rule", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert sorted(project.rglob("*")) == before


def test_nothing_is_overwritten(project: Path, run: Run) -> None:
    assert run("new-rule", "ACM101", "some-name").code == 0
    mine = project / SOURCES / "acm101_some_name.py"
    mine.write_text("mine")
    code, _, err = run("new-rule", "ACM101", "some-name", "torchmemlint-acm")
    assert code == 2
    assert "is there already" in err
    assert mine.read_text() == "mine"


def test_a_rule_of_torchmemlint_itself(tmp_path: Path) -> None:
    assert scaffold.is_checkout(ROOT)
    made = scaffold.here("TML199", "some-name", ROOT)
    paths = [path.relative_to(ROOT).as_posix() for path in made.files]
    assert paths == [
        "torchmemlint/rules/graphs/tml199_some_name.py",
        "torchmemlint/rules/graphs/tml199_some_name.md",
        "fixtures/TML199-some-name/bad_first.py",
        "fixtures/TML199-some-name/good_first.py",
    ]
    for path, text in made.files.items():
        if path.suffix == ".py":
            compile(text, str(path), "exec")
    with pytest.raises(scaffold.ScaffoldError, match="there is no family of rules TML9"):
        scaffold.here("TML901", "some-name", ROOT)
    assert not scaffold.is_checkout(tmp_path)


def test_expectations_are_comments() -> None:
    text = 'x = 1  # expect: ACM101\n"# expect: ACM102"\ny = 2  #expect: TML201 error, ACM103\n'
    assert expectations(text) == [Expected(1, "ACM101"), Expected(3, "ACM103"), Expected(3, "TML201", "error")]
    assert str(expectations(text)[2]) == "line 3: TML201 error"
    with pytest.raises(ValueError, match="line 1: 'acm' is no code"):
        expectations("x = 1  # expect: acm\n")


def test_a_folder_without_fixtures_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        fixtures_in(tmp_path)


@pytest.mark.parametrize(
    ("name", "comment", "message"),
    [
        ("bad_one.py", "  # expect: ACM101", None),
        ("bad_one.py", "  # expect: ACM101 warning", None),
        ("bad_one.py", "  # expect: ACM101 error", "missed   line 6: ACM101 error\n  surplus  line 6: ACM101 warning"),
        ("bad_one.py", "  # expect: ACM102", "missed   line 6: ACM102\n  surplus  line 6: ACM101 warning"),
        ("bad_one.py", "  # expect: ACM101, ACM101", "missed   line 6: ACM101"),
        ("bad_one.py", "", "no `# expect: CODE`"),
        ("good_one.py", "", "surplus  line 6: ACM101 warning"),
        ("good_one.py", "  # expect: ACM101", "good_ files announce no finding"),
    ],
)
def test_fixtures_are_told_from_what_is_found(tmp_path: Path, name: str, comment: str, message: str | None) -> None:
    (tmp_path / "acme.py").write_text(rule())
    path = tmp_path / name
    path.write_text(PROGRAM.rstrip("\n") + comment + "\n")
    if message is None:
        check_fixture(path, select=["ACM"], plugins=[tmp_path / "acme.py"])
    else:
        with pytest.raises(AssertionError, match=re.escape(message)):
            check_fixture(path, select=["ACM"], plugins=[tmp_path / "acme.py"])


@pytest.mark.parametrize(
    ("fixed", "message"),
    [
        (PROGRAM.replace("()", "(max_entries=100_000)", 1), None),
        (PROGRAM.replace("()", "(max_entries=3)", 1), "fixing makes something else"),
        (PROGRAM, "fixing makes something else"),
    ],
)
def test_fixed_twins(tmp_path: Path, fixed: str, message: str | None) -> None:
    (tmp_path / "acme.py").write_text(rule())
    path = tmp_path / "bad_one.py"
    path.write_text(PROGRAM.rstrip("\n") + "  # expect: ACM101\n")
    (tmp_path / "bad_one.fixed.py").write_text(fixed)
    if message is None:
        check_fixture(path, select=["ACM"], plugins=[tmp_path / "acme.py"])
    else:
        with pytest.raises(AssertionError, match=message):
            check_fixture(path, select=["ACM"], plugins=[tmp_path / "acme.py"])


def test_the_documented_facts_are_there() -> None:
    document = (ROOT / "docs/plugins.md").read_text(encoding="utf-8")
    rows = re.findall(
        r"^\| `([\w.]+)(?:\(\))?` \| [^|]+ \| ([^|]*) \|$", document.partition("| `facts.` |")[2], re.MULTILINE
    )
    assert len(rows) >= 3
    hints = get_type_hints(facts.FileFacts, vars(facts))
    for name in ("passes", "backwards", "retentions", "loaders"):
        method = getattr(facts.FileFacts, name)
        hints[method.__name__] = get_type_hints(method, vars(facts))["return"]
    for fact, attributes in rows:
        name = fact.partition(".")[0]
        assert name in hints, fact
        (kind, *_) = getattr(hints[name], "__args__", (None,))
        if is_dataclass(kind):
            known = {field.name for field in fields(kind)} | set(vars(kind))
            named = {word.partition(".")[0] for word in re.findall(r"`([\w.]+)[`(]", attributes)} - {"None", ""}
            named -= {"DataLoader"}
            assert named <= known, (fact, named - known)
            assert "span" in known, fact
            assert kind.__dataclass_params__.frozen, f"one rule could change {fact} for the next"


def test_plugins_see_no_less_than_ours() -> None:
    """The public names are those that our own rules are made of."""
    from torchmemlint import plugins

    for name in ("Rule", "Severity", "Applicability", "Fix", "Edit", "Finding"):
        assert getattr(plugins, name) is not None
    assert all(isinstance(one, plugins.Rule) for one in by_code().values())
    assert set(plugins.__all__) <= set(vars(plugins))
