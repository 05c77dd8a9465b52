"""Configurations that inherit from others by `extend`, and ask for a version."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchmemlint import __version__
from torchmemlint.config import layers
from torchmemlint.config.errors import ConfigError
from torchmemlint.config.resolver import Resolver
from torchmemlint.config.selection import ALWAYS
from torchmemlint.config.versions import satisfies
from torchmemlint.findings import Severity


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "pkg" / "deep").mkdir(parents=True)
    (tmp_path / "pkg" / "torchmemlint.toml").write_text("extend = '../pyproject.toml'\n")
    return tmp_path


def base(root: Path, text: str) -> None:
    (root / "pyproject.toml").write_text("[tool.torchmemlint]\n" + text)


def own(root: Path, text: str) -> None:
    (root / "pkg" / "torchmemlint.toml").write_text("extend = '../pyproject.toml'\n" + text)


def test_what_is_not_said_is_inherited(root: Path) -> None:
    base(root, "select = ['TML1']\nfail-on = 'error'\nconfidence = 'certain'\ntarget-torch = '2.4'\n")
    own(root, "confidence = 'possible'\n")
    settings = Resolver(root).settings_for(root / "pkg" / "deep")
    assert settings.source == root / "pkg" / "torchmemlint.toml"
    assert settings.root == root / "pkg"
    assert settings.rules == {*ALWAYS, "TML101", "TML102"}
    assert (settings.fail_on, settings.confidence.value, settings.target_torch) == (Severity.ERROR, "possible", "2.4")


@pytest.mark.parametrize(
    ("above", "below", "rules"),
    [
        ("ignore = ['TML101']", "extend-select = ['TML204']", {"TML102", "TML201", "TML204", "TML301", "TML401"}),
        ("select = ['TML1']\nextend-select = ['TML2']", "select = ['TML4']", {"TML401"}),  # it starts afresh
        ("select = ['TML1']", "ignore = ['TML102']", {"TML101"}),
        ("ignore = ['TML101']", "select = ['TML1']", {"TML101", "TML102"}),
        ("severity = {TML101 = 'off'}", "severity = {TML102 = 'off'}", {"TML201", "TML301", "TML401"}),
        ("select = ['TML1']", "extend-select = ['TML4']\nignore = ['TML101']", {"TML102", "TML401"}),
    ],
)
def test_rules_are_selected_by_one_after_the_other(root: Path, above: str, below: str, rules: set[str]) -> None:
    base(root, above)
    own(root, below)
    assert Resolver(root).settings_for(root / "pkg").rules - set(ALWAYS) == rules


def test_patterns_and_paths_stay_relative_to_their_file(root: Path) -> None:
    base(
        root,
        "exclude = ['pkg/gen']\nextend-exclude = ['/b.py']\nbaseline = 'ci/known.json'\ncache-dir = 'kept'\n"
        "per-file-ignores = {'pkg/a.py' = ['TML1']}\n",
    )
    own(root, "extend-exclude = ['/c.py']\nextend-per-file-ignores = {'a.py' = ['TML2']}\n")
    settings = Resolver(root).settings_for(root / "pkg")

    def excludes(name: str) -> bool:
        return settings.excludes(str(root / name), is_directory=False)

    assert [excludes(name) for name in ("pkg/gen", "pkg/b.py", "pkg/c.py", "pkg/d.py")] == [True, False, True, False]
    assert settings.baseline_file == root / "ci" / "known.json"
    assert settings.cache_dir == root / "kept"
    assert settings.rules_for(str(root / "pkg" / "a.py")) == {*ALWAYS, "TML301", "TML401"}


def test_tables_add_up(root: Path) -> None:
    base(root, "severity = {TML101 = 'advice', TML4 = 'error'}\nlimits = {time = 3, size = 2}\n")
    own(root, "severity = {TML101 = 'warning'}\nlimits = {time = 4}\n")
    settings = Resolver(root).settings_for(root / "pkg")
    assert dict(settings.severities) == {"TML101": Severity.WARNING, "TML401": Severity.ERROR}
    assert (settings.limits.time, settings.limits.size) == (4, 2)


def test_a_chain_and_what_is_given_over_it(root: Path) -> None:
    base(root, "fail-on = 'advice'\nfix = true\n")
    (root / "pkg" / "deep" / "torchmemlint.toml").write_text("extend = '../torchmemlint.toml'\nfix = false\n")
    own(root, "unsafe-fixes = true\n")
    settings = Resolver(root).settings_for(root / "pkg" / "deep")
    assert (settings.fail_on, settings.fixes.fix, settings.fixes.unsafe) == (Severity.ADVICE, False, True)
    above = layers.Layer(fail_on=Severity.ERROR)
    assert Resolver(root, layer=above).settings_for(root / "pkg" / "deep").fail_on is Severity.ERROR
    given = Resolver(root, config=root / "pkg" / "torchmemlint.toml").settings_for(root)
    assert (given.fail_on, given.fixes.unsafe) == (Severity.ADVICE, True)


@pytest.mark.parametrize(
    ("extend", "message"),
    [
        ("'../nothing.toml'", "there is no file"),
        ("'torchmemlint.toml'", "inherits from this file, too"),
        ("'../setup.cfg'", "expected a file that ends in .toml"),
        ("3", "expected a string, found an integer"),
        ("['acme_rules']", "modules with rules are named by `plugins`"),
        ("'../pyproject.toml'", "has no table `tool.torchmemlint`"),
    ],
)
def test_what_cannot_be_inherited_is_said(root: Path, extend: str, message: str) -> None:
    (root / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    (root / "pkg" / "torchmemlint.toml").write_text(f"extend = {extend}\n")
    with pytest.raises(ConfigError, match=r"torchmemlint\.toml: `extend`") as caught:
        Resolver(root).settings_for(root / "pkg")
    assert message in str(caught.value)


def test_two_files_that_inherit_from_each_other(root: Path) -> None:
    base(root, "extend = 'pkg/torchmemlint.toml'\n")
    with pytest.raises(ConfigError, match="each would need the other"):
        Resolver(root).settings_for(root / "pkg")


def test_an_error_names_the_file_that_has_it(root: Path) -> None:
    base(root, "slect = []\n")
    with pytest.raises(ConfigError, match=r"pyproject\.toml: unknown configuration key `slect`"):
        Resolver(root).settings_for(root / "pkg")


@pytest.mark.parametrize("is_repository", [True, False])
def test_somebody_elses_files_are_no_bases(root: Path, is_repository: bool) -> None:
    """Whose code is checked may name what came with it, or what would be found above, and nothing else."""
    project, other = root / "pkg" / "deep", root / "pkg" / "beside"
    other.mkdir()
    (other / "x.toml").write_text("fix = true\n")
    (project / "torchmemlint.toml").write_text("extend = '../beside/x.toml'\n")
    (project / "linked.toml").symlink_to(other / "x.toml")
    if is_repository:
        (project / ".git").mkdir()
    for name in ("../beside/x.toml", "linked.toml", str(other / "x.toml")):
        (project / "torchmemlint.toml").write_text(f"extend = '{name}'\n")
        with pytest.raises(ConfigError, match="`extend` leads out of"):
            Resolver(project).settings_for(project)
    (root / "pkg" / "torchmemlint.toml").write_text("fail-on = 'error'\n")
    (project / "torchmemlint.toml").write_text("extend = '../torchmemlint.toml'\n")
    if is_repository:
        with pytest.raises(ConfigError, match="`extend` leads out of"):
            Resolver(project).settings_for(project)
        (root / ".git").mkdir()
        (project / ".git").rmdir()
    assert Resolver(project).settings_for(project).fail_on is Severity.ERROR


@pytest.mark.parametrize(
    ("specifiers", "version", "expected"),
    [
        ("0.1.0", "0.1.0", True),
        ("0.1", "0.1.0", True),
        ("0.1", "0.1.1", False),
        (">=0.1", "0.1.0", True),
        (">=0.1,<0.3", "0.3", False),
        (">= 0.1 , <0.3", "0.2.9", True),
        ("==0.1.*", "0.1.7", True),
        ("!=0.1.*", "0.1.7", False),
        ("~=0.1", "0.9", True),
        ("~=0.1.2", "0.1.1", False),
        ("~=0.1.2", "0.2.0", False),
        ("~=0.1.2", "0.1.9", True),
        (">0.1", "0.1.0", False),
        ("<=0.10", "0.9", True),
        ("===0.1.0", "0.1.0", True),
    ],
)
def test_versions(specifiers: str, version: str, expected: bool) -> None:
    assert satisfies(version, specifiers) is expected
    packaging = pytest.importorskip("packaging.specifiers")
    if not specifiers[0].isdigit():
        assert packaging.SpecifierSet(specifiers).contains(version) is expected


def test_a_configuration_asks_for_a_version(root: Path) -> None:
    base(root, f"required-version = '{__version__}'\n")
    Resolver(root).settings_for(root / "pkg")
    base(root, "what-comes-later = 1\nrequired-version = '>=99'\n")  # said before what this version does not know
    with pytest.raises(ConfigError, match=f"it asks for >=99, and this is torchmemlint {__version__}"):
        Resolver(root).settings_for(root / "pkg")
    base(root, "required-version = 'new'\n")
    with pytest.raises(ConfigError, match="`required-version`: expected versions such as"):
        Resolver(root).settings_for(root / "pkg")
