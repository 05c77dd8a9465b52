"""Where rules of plugins come from, and what is said of those that cannot be used."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from torchmemlint.config.errors import ConfigError
from torchmemlint.rules import registry
from torchmemlint.rules.extensions import PluginError, extension, extension_of, installed, search_path

from .conftest import Run, forget, install, rule


def codes_of_plugins(plugins: tuple[str, ...] = ()) -> set[str]:
    return set(registry.known(plugins).brought_by)


def test_without_plugins_there_are_our_own_rules_alone() -> None:
    assert registry.known().rules == registry.all_rules()
    assert registry.known().letters == {"TML"}


@pytest.mark.parametrize(
    "value",
    ["acme_lints", "acme_lints:UnboundedHistory", "acme_lints:RULES", "acme_lints:MODULES", "acme_lints:NESTED"],
)
def test_an_entry_point_is_a_class_a_module_or_an_iterable(site: Path, value: str) -> None:
    text = rule() + "import sys\nRULES = (UnboundedHistory,)\nMODULES = [sys.modules[__name__]]\nNESTED = {RULES}\n"
    install(site, "acme-lint", f"acme = {value}", acme_lints=text)
    assert codes_of_plugins() == {"ACM101"}
    assert registry.known().brought_by["ACM101"] == f"plugin `acme-lint 1.0` (entry point `acme = {value}`)"
    assert registry.all_rules() == tuple(one for one in registry.known().rules if one.code != "ACM101")


def test_a_package_brings_the_rules_of_its_modules(site: Path) -> None:
    install(site, "acme-lint", "acme = acme_pack")
    package = site / "acme_pack"
    (package / "more").mkdir(parents=True)
    (package / "tests").mkdir()
    (package / "__init__.py").write_text('"""Nothing here."""\n')
    (package / "one.py").write_text(rule("ACM101", "one", "One"))
    (package / "more" / "two.py").write_text(rule("ACM102", "two", "Two") + "from acme_pack.one import One\n")
    for name in ("_private.py", "test_three.py", "tests/four.py"):
        (package / name).write_text(rule("ACM103", "three", "Three"))
    (package / "unrelated.py").write_text("raise SystemExit('nobody wants this')\n")
    (package / "my-script.py").write_text("import torchmemlint\nraise SystemExit('nor this')\n")
    assert codes_of_plugins() == {"ACM101", "ACM102"}


def test_bases_and_the_rules_of_others_are_no_rules_of_a_module(site: Path) -> None:
    text = rule() + (
        "from torchmemlint.rules.graphs.tml105_needless_retain_graph import NeedlessRetainGraph\n"
        "class Base(Rule):\n    def check(self, facts):\n        return iter(())\n"
    )
    install(site, "acme-lint", "acme = acme_lints", acme_lints=text)
    assert codes_of_plugins() == {"ACM101"}


def test_the_same_rule_in_two_ways_is_one_rule(site: Path) -> None:
    install(site, "acme-lint", "acme = acme_lints\nagain = acme_lints:UnboundedHistory", acme_lints=rule())
    assert codes_of_plugins(("acme_lints",)) == {"ACM101"}


def test_a_package_that_is_there_twice_counts_once(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(site, "acme-lint", "acme = acme_lints", acme_lints=rule())
    older = tmp_path / "older"
    older.mkdir()
    monkeypatch.setattr(sys, "path", [*sys.path, str(older)])
    install(older, "acme-lint", "acme = acme_older", acme_older=rule(kind="Older"))
    assert codes_of_plugins() == {"ACM101"}


def test_a_package_in_an_archive_on_the_path_counts(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "packed"
    folder.mkdir()
    install(folder, "acme-lint", "acme = acme_lints", acme_lints=rule())
    archive = shutil.make_archive(str(tmp_path / "acme"), "zip", folder)
    monkeypatch.setattr(sys, "path", [*sys.path, archive])
    forget()
    assert codes_of_plugins() == {"ACM101"}


@pytest.mark.parametrize("name", ["acme_lint.egg-info", "acme_lint.egg/EGG-INFO"])
def test_a_package_as_setuptools_installed_it_counts(site: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    (site / name).parent.mkdir(exist_ok=True)
    install(site, "acme-lint", "acme = acme_lints", acme_lints=rule())
    (site / "acme_lint-1.0.dist-info" / "METADATA").rename(site / "acme_lint-1.0.dist-info" / "PKG-INFO")
    (site / "acme_lint-1.0.dist-info").rename(site / name)
    monkeypatch.setattr(sys, "path", [*sys.path, str((site / name).parent)])
    forget()
    assert codes_of_plugins() == {"ACM101"}


def test_a_package_that_only_another_finder_knows_counts(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    install(hidden, "acme-lint", "acme = acme_lints", acme_lints="")
    (site / "acme_lints.py").write_text(rule())

    class Finder(importlib.metadata.DistributionFinder):
        def find_spec(self, *_: object) -> None:
            return None

        def find_distributions(self, context: object = None) -> list[importlib.metadata.Distribution]:
            return [importlib.metadata.Distribution.at(hidden / "acme_lint-1.0.dist-info")]

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder()])
    forget()
    assert codes_of_plugins() == {"ACM101"}


def test_what_is_damaged_or_of_others_brings_nothing(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (site / "plain.egg-info").write_text("Name: plain\n")
    (site / "other-1.0.dist-info").mkdir()
    (site / "other-1.0.dist-info" / "entry_points.txt").write_bytes(b"[console_scripts]\nother = other:\xff\n")
    (tmp_path / "no_archive").write_text("")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "missing"), str(tmp_path / "no_archive")])
    forget()
    assert codes_of_plugins() == set()


def test_plugins_can_be_switched_off(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(site, "acme-lint", "acme = acme_lints", acme_lints="raise SystemExit(3)\n")
    monkeypatch.setenv("TORCHMEMLINT_NO_PLUGINS", "1")
    forget()
    assert installed() == ()
    monkeypatch.setenv("TORCHMEMLINT_NO_PLUGINS", "0")
    forget()
    with pytest.raises(PluginError):
        installed()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "import nothing_of_the_kind\n",
            r"cannot be loaded: ModuleNotFoundError: No module named 'nothing_of_the_kind'",
        ),
        ("raise SystemExit(1)\n", r"cannot be loaded: SystemExit: 1"),
        ("def broken(:\n", r"cannot be loaded: SyntaxError"),
        ("x = 1\n", r"brings no rules"),
        (rule(code="AC1"), r"rule `UnboundedHistory`: the code `AC1` is not of the form ABC123"),
        (rule(code="acm101"), r"the code `acm101` is not of the form"),
        (rule(code="TML999"), r"the code `TML999` begins with `TML`; take letters of your own"),
        (rule(code="TMLX101"), r"the code `TMLX101` begins with `TMLX`"),
        (rule(code="ALL101"), r"the code `ALL101` begins with `ALL`"),
        (rule(name="Some Words"), r"the name `Some Words` is not of the form `some-words`"),
        (rule(severity='"warning"'), r"`severity` is 'warning'; expected a `Severity`"),
        (rule(fix="True"), r"`fix` is True; expected an `Applicability` or `None`"),
        (rule().replace("    why = ", "    because = "), r"`why` is None; expected a sentence"),
        (rule().replace("## Why it costs memory", "## Why"), r"unknown section `## Why`"),
        (rule().replace("## What it does\n", ""), r"no text for `## What it does`"),
        (rule().replace("def check", "def look"), r"cannot be loaded: TypeError: Can't instantiate abstract class"),
        (
            rule(name="graph-accumulation"),
            r"two rules are called `graph-accumulation`: `TML101` of torchmemlint",
        ),
    ],
)
def test_what_is_wrong_with_a_plugin_is_said_with_its_name(site: Path, run: Run, text: str, message: str) -> None:
    install(site, "acme-lint", "acme = acme_lints", acme_lints=text)
    with pytest.raises(PluginError, match=r"plugin `acme-lint 1\.0` \(entry point `acme = acme_lints`\)") as caught:
        registry.known()
    assert caught.match(message)
    code, out, err = run("a.py")
    assert (code, out) == (2, "")
    assert "acme-lint 1.0" in err
    assert "Traceback" not in err
    assert run("--version").code == 0
    assert run("rule", "TML101").code == 0


def test_an_object_that_is_no_rule(site: Path) -> None:
    install(site, "acme-lint", "acme = acme_lints:LEAKS", acme_lints="LEAKS = [3]\n")
    with pytest.raises(PluginError, match=r"`3` is no subclass of `torchmemlint\.plugins\.Rule`"):
        registry.known()


def test_two_plugins_with_one_code_are_both_named(site: Path) -> None:
    install(site, "acme-lint", "acme = acme_lints", acme_lints=rule())
    install(site, "zeta-lint", "zeta = zeta_rules", zeta_rules=rule(name="other", kind="Other"))
    with pytest.raises(PluginError, match=r"two rules are called `ACM101`: .*acme-lint 1\.0.*, and .*zeta-lint 1\.0"):
        registry.known()


def test_two_plugins_may_share_their_letters(site: Path) -> None:
    install(site, "acme-lint", "acme = acme_lints", acme_lints=rule())
    install(site, "zeta-lint", "zeta = zeta_rules", zeta_rules=rule("ACM201", "other", "Other"))
    assert codes_of_plugins() == {"ACM101", "ACM201"}


# What a configuration may name.


def test_extend_names_installed_modules(site: Path, project: Path, run: Run) -> None:
    (site / "acme_lints.py").write_text(rule())
    (project / "torchmemlint.toml").write_text('plugins = ["acme_lints"]\n')
    assert run("a.py", "--output-format=concise").out.startswith("a.py:6:9: ACM101 [*] No bound")
    assert run("a.py", "--select", "ACM").code == 1
    assert run("a.py", "--isolated").code == 0


@pytest.mark.parametrize(
    "word", ["./rules", "rules/acme.py", "../rules.py", "/tmp/rules", "acme-rules", "", "acme rules", "C:\\x"]
)
def test_a_configuration_names_no_paths(project: Path, run: Run, word: str) -> None:
    (project / "torchmemlint.toml").write_text(f"plugins = ['{word}']\n")
    code, _, err = run("a.py")
    assert code == 2
    assert "`plugins`: " in err
    assert "--plugins" in err


def test_the_tree_that_is_checked_runs_nothing(project: Path, tmp_path: Path) -> None:
    """Neither by a module beside its configuration, nor by what looks like an installed package there."""
    evil = f"open({str(tmp_path / 'ran')!r}, 'w').close()\n"
    (project / "acme_evil.py").write_text("import torchmemlint\n" + evil)
    (project / "conftest.py").write_text(evil)
    install(project, "acme-evil", "acme = acme_evil")
    for configuration, code in (("", 0), ('plugins = ["acme_evil"]', 2)):
        (project / "torchmemlint.toml").write_text(configuration + "\n")
        for start in (
            ["-m", "torchmemlint"],
            ["-c", "import sys; from torchmemlint.cli.main import main; sys.exit(main())"],
        ):
            environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
            done = subprocess.run(
                [sys.executable, *start, "a.py"],
                cwd=project,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == code, done.stderr
    assert "there is no such module among what is installed" in done.stderr
    assert not (tmp_path / "ran").exists()


def test_modules_that_do_not_speak_of_us_are_not_run(site: Path, project: Path, tmp_path: Path, run: Run) -> None:
    (site / "acme_tool.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    for name in ("acme_tool", "this", "sys", "__hello__"):
        (project / "torchmemlint.toml").write_text(f'plugins = ["{name}"]\n')
        code, _, err = run("a.py")
        assert code == 2
        assert "it is no module of rules" in err
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["torchmemlint", "torchmemlint.runtime", "torchmemlint.rules.graphs"])
def test_our_own_modules_are_no_extensions(name: str) -> None:
    with pytest.raises(PluginError, match="our own rules are there without it"):
        extension(name)


def test_looking_for_a_module_does_not_run_the_packages_around_it(site: Path, tmp_path: Path) -> None:
    package = site / "acme_pack"
    package.mkdir()
    (package / "__init__.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    (package / "tool.py").write_text("x = 1\n")
    for name in ("acme_pack.tool", "acme_pack.missing"):
        with pytest.raises(PluginError):
            extension(name)
    assert not (tmp_path / "ran").exists()


def test_what_is_wrong_with_extend_is_said_with_the_file(site: Path, project: Path, run: Run) -> None:
    (site / "acme_lints.py").write_text("import torchmemlint\nraise ValueError('no')\n")
    (project / "torchmemlint.toml").write_text('plugins = ["acme_lints"]\n')
    code, out, err = run("a.py")
    assert (code, out) == (2, "")
    assert (
        f"{project / 'torchmemlint.toml'}: `plugins`: module `acme_lints` (by `plugins`) cannot be loaded: "
        "ValueError: no" in err
    )


def test_the_working_directory_is_no_place_for_modules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for first in ("", str(tmp_path)):
        monkeypatch.setattr(sys, "path", [first, "/usr/lib"])
        assert search_path() == ["/usr/lib"]
    monkeypatch.setattr(sys, "path", ["/usr/lib", str(tmp_path)])  # somebody put it there
    assert search_path() == ["/usr/lib", str(tmp_path)]


# What the command line may name, besides.


def test_files_and_folders_on_the_command_line(project: Path, run: Run) -> None:
    (project / "acme.py").write_text(rule())
    folder = project / "lint_rules"
    folder.mkdir()
    (folder / "one.py").write_text("from .shared import BOUND\n" + rule("LOC101", "one", "One"))
    (folder / "shared.py").write_text("BOUND = 100_000\n")
    assert "ACM101" in run("a.py", "--plugins", "acme.py", "--output-format=concise").out
    assert "LOC101" in run("a.py", "--plugins", "./lint_rules/", "--output-format=concise").out
    both = run(
        "a.py", "--plugins", "lint_rules", "--plugins", "acme.py", "--select", "ACM,LOC", "--output-format=concise"
    )
    assert (both.code, both.out.count("No bound")) == (1, 2)
    assert run("a.py", "--config", 'plugins = ["acme"]').code == 2


@pytest.mark.parametrize(("word", "message"), [("nothing.py", "there is no such folder"), ("a.py", "brings no rules")])
def test_wrong_paths_on_the_command_line(project: Path, run: Run, word: str, message: str) -> None:
    (project / "a.py").write_text("x = 1\n")
    code, out, err = run("a.py", "--plugins", word)
    assert (code, out) == (2, "")
    assert message in err
    assert str(project / word) in err


def test_a_word_is_a_module_unless_it_is_there_as_a_path(project: Path) -> None:
    assert extension_of("acme.rules") == "acme.rules"
    assert extension_of("./acme") == str(project / "acme")
    assert extension_of(Path("acme")) == str(project / "acme")
    (project / "acme").mkdir()
    assert extension_of("acme") == str(project / "acme")


def test_a_module_that_failed_is_tried_again(site: Path) -> None:
    file = site / "acme_lints.py"
    file.write_text("import torchmemlint\n\n\nraise ValueError\n")
    with pytest.raises(ConfigError):
        registry.known((str(file),))
    file.write_text(rule())
    assert codes_of_plugins((str(file),)) == {"ACM101"}
