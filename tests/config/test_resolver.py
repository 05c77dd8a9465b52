from pathlib import Path

import pytest

from torchmemlint.config import layers
from torchmemlint.config.errors import ConfigError
from torchmemlint.config.layers import Layer, override, read_inline, read_layer
from torchmemlint.config.options import OPTIONS
from torchmemlint.config.patterns import Rooted
from torchmemlint.config.resolver import Resolver
from torchmemlint.config.selection import ALWAYS, Selection
from torchmemlint.doubts import Confidence
from torchmemlint.findings import Severity

FULL = """
[tool.torchmemlint]
select = ["TML1", "eval-without-no-grad"]
extend-select = ["TML204"]
ignore = ["TML102"]
exclude = ["third_party/"]
extend-exclude = ["gen_*.py"]
respect-gitignore = false
fail-on = "error"
confidence = "certain"
cache-dir = "cache"
target-torch = "2.4"

[tool.torchmemlint.per-file-ignores]
"tests/**" = ["TML2"]
"!src/**" = ["TML101"]

[tool.torchmemlint.severity]
TML1 = "advice"
graph-accumulation = "error"
TML204 = "off"
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / ".torchmemlint.toml").write_text("")
    return tmp_path


def test_every_option(root: Path) -> None:
    (root / ".torchmemlint.toml").unlink()
    (root / "pyproject.toml").write_text(FULL)
    settings = Resolver(root).settings_for(root)
    assert settings.rules == {*ALWAYS, "TML101", "TML201"}
    assert settings.source == root / "pyproject.toml"
    assert dict(settings.severities) == {"TML101": Severity.ERROR, "TML102": Severity.ADVICE}
    assert settings.fail_on is Severity.ERROR
    assert settings.confidence is Confidence.CERTAIN
    assert (settings.exclude, settings.extend_exclude) == (("third_party/",), ("gen_*.py",))
    assert not settings.respect_gitignore
    assert (settings.cache_dir, settings.target_torch) == (root / "cache", "2.4")
    assert settings.rules_for(str(root / "src/a.py")) == {*ALWAYS, "TML101", "TML201"}
    assert settings.rules_for(str(root / "tests/a.py")) == {*ALWAYS}
    assert settings.rules_for(str(root / "setup.py")) == {*ALWAYS, "TML201"}


@pytest.mark.parametrize("folder", ["/tmp/elsewhere", "../beside", "a/../../beside", "."])
def test_configured_folders_are_written_to_only_within_the_project(root: Path, folder: str) -> None:
    (root / ".torchmemlint.toml").write_text(f'cache-dir = "{folder}"\n')
    with pytest.raises(ConfigError, match="`cache-dir` leads out of"):
        Resolver(root).settings_for(root)


def test_defaults(root: Path) -> None:
    settings = Resolver(root, isolated=True).settings_for(root)
    assert settings.source is None
    assert settings.fail_on is Severity.WARNING
    assert settings.confidence is Confidence.LIKELY
    assert settings.respect_gitignore
    assert settings.excludes(str(root / "a" / ".venv"), is_directory=True)
    assert not settings.excludes(str(root / "a" / "env.py"), is_directory=False)


def test_nearest_configuration_wins_and_is_not_merged(root: Path) -> None:
    (root / "a" / "b" / "c").mkdir(parents=True)
    (root / "pyproject.toml").write_text("[tool.torchmemlint]\nselect = ['TML2']\n")
    (root / ".torchmemlint.toml").unlink()
    (root / "a" / "torchmemlint.toml").write_text("ignore = ['TML1']\n")
    (root / "a" / "pyproject.toml").write_text("[project]\nname = 'a'\n")
    (root / "a" / "b" / "pyproject.toml").write_text("[tool.ruff]\n")
    resolver = Resolver(root)
    assert resolver.settings_for(root).rules == {*ALWAYS, "TML201", "TML204"}
    nearest = resolver.settings_for(root / "a" / "b" / "c")
    assert nearest.root == root / "a"
    assert "TML301" in nearest.rules
    assert "TML101" not in nearest.rules
    assert resolver.settings_for(root / "a" / "b" / "c") is nearest


@pytest.mark.parametrize("hidden", [".torchmemlint.toml", "torchmemlint.toml"])
def test_own_file_before_pyproject(root: Path, hidden: str) -> None:
    (root / ".torchmemlint.toml").unlink()
    (root / "pyproject.toml").write_text("[tool.torchmemlint]\nselect = ['TML2']\n")
    (root / hidden).write_text("select = ['TML1']\n")
    assert Resolver(root).settings_for(root).rules == {*ALWAYS, "TML101", "TML102"}


def test_explicit_file_isolated_and_bounded(root: Path) -> None:
    (root / ".torchmemlint.toml").write_text("select = ['TML1']\n")
    (root / "other.toml").write_text("select = ['TML4']\n")
    (root / "sub").mkdir()
    assert Resolver(root, config=root / "other.toml").settings_for(root / "sub").rules == {*ALWAYS, "TML401"}
    assert "TML301" in Resolver(root, isolated=True).settings_for(root / "sub").rules
    assert "TML301" not in Resolver(root / "sub").settings_for(root / "sub").rules
    assert "TML301" in Resolver(root / "sub", bounded=True).settings_for(root / "sub").rules


def test_command_line_over_files(root: Path) -> None:
    (root / ".torchmemlint.toml").write_text("select = ['TML1']\nfail-on = 'error'\n")
    layer = override(read_inline("fail-on = 'advice'"), Layer(extend_exclude=("x",)))
    settings = Resolver(root, layer=layer, selection=Selection(("TML4",))).settings_for(root)
    assert settings.rules == {*ALWAYS, "TML401"}
    assert settings.fail_on is Severity.ADVICE
    assert settings.extend_exclude == (Rooted("x", root),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("selct = []", "unknown configuration key `selct`. Did you mean `select`?"),
        ("per_file_ignores = {}", "Did you mean `per-file-ignores`?"),
        ("zebra = 1", "unknown configuration key `zebra`."),
        ("select = 'TML1'", "`select`: expected a list of strings, found a string"),
        ("select = [1]", "`select`: expected a list of strings, found a list with an integer"),
        ("select = ['TML110']", "`select`: Unknown rule selector `TML110`. Did you mean `TML10"),
        ("ignore = ['graph-colection']", "Did you mean `graph-collection`?"),
        ("respect-gitignore = 'yes'", "expected true or false, found a string"),
        ("fail-on = 'eror'", 'expected one of "advice", "warning", "error", found "eror". Did you mean `error`?'),
        ("fail-on = true", "expected a string, found a boolean"),
        ("confidence = 'sure'", 'expected one of "certain", "likely", "possible", found "sure"'),
        ("confidence = 1", "`confidence`: expected a string, found an integer"),
        ("severity = {TML101 = 'of'}", "Did you mean `off`?"),
        ("severity = {TML999 = 'off'}", "`severity`: Unknown rule selector `TML999`"),
        ("per-file-ignores = ['a']", "expected a table, found a list"),
        ("per-file-ignores = {'a' = ['TML999']}", "Unknown rule selector `TML999`"),
        ("target-torch = 'two'", 'expected a torch version such as "2.4"'),
        ("target-torch = 2.4", "expected a string, found a number"),
        ("exclude = 3", "expected a list of strings, found an integer"),
        ("select = [", "not valid TOML"),
    ],
)
def test_errors_name_the_file_and_the_key(root: Path, text: str, message: str) -> None:
    file = root / ".torchmemlint.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        Resolver(root).settings_for(root)
    assert str(caught.value).startswith(str(file))
    assert message in str(caught.value)


def test_tool_table_of_the_wrong_type(root: Path) -> None:
    (root / ".torchmemlint.toml").unlink()
    (root / "pyproject.toml").write_text("[tool]\ntorchmemlint = 3\n")
    with pytest.raises(ConfigError, match=r"`tool\.torchmemlint` is not a table"):
        Resolver(root).settings_for(root)


def test_options_and_layer_agree() -> None:
    assert {option.key.replace("-", "_") for option in OPTIONS} == set(Layer.__slots__)


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.key)
def test_documented_examples_are_valid(option: object) -> None:
    parsed = layers.tomllib.loads(option.example)  # type: ignore[attr-defined]
    table = parsed["tool"]["torchmemlint"] if "tool" in parsed else parsed
    assert read_layer(table, "example") != Layer()
