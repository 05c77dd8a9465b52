"""`torchmemlint config check`, `show` and `schema`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from torchmemlint.cli.main import main
from torchmemlint.config.inspecting import row_of
from torchmemlint.config.options import OPTIONS
from torchmemlint.config.resolver import Resolver
from torchmemlint.config.schema import settings_schema
from torchmemlint.rules import registry

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def fake_rules() -> None:
    """The other tests of this folder have fake rules; these have the real ones."""


LATER = "2 exclude TLM2 string of TML302x packages no-gard"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        capfd.readouterr()
        code = main(["config", *arguments])
        return (code, *capfd.readouterr())

    return call


WRONG = """\
[project]
name = "x"
ignore = 3

[tool.ruff]
ignore = ["TML101x"]

[tool.torchmemlint]
# slect is wrong, too
slect = []
ignore = ["graph-acumulation",
   "TML101", "TML999"]
preset = "strickt"
plugins = ["acme_nothing", "./x"]
target-torch = "2"
exclude = "a"

[tool.torchmemlint.per-file-ignores]
"tests/**" = ["TML1", "TLM2"]
"src/**" = "TML1"

[tool.torchmemlint.severity]
TML301 = "of"
TML302x = "off"

[tool.torchmemlint.contracts.acme]
packages = ["a b"]
no-gard = []
"""


def test_everything_that_is_wrong_is_said_with_its_line(run: Run, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(WRONG)
    code, out, err = run("check")
    assert (code, err) == (1, "")
    said = [line.split(": ", 1) for line in out.splitlines()]
    assert [place for place, _ in said] == [
        f"pyproject.toml:{row}" for row in (10, 11, 12, 13, 14, 14, 15, 16, 19, 20, 23, 24, 27, 28)
    ]
    for words, (_, message) in zip(
        [*"slect graph-acumulation TML999 strickt acme_nothing ./x".split(), *LATER.split()],
        said,
        strict=True,
    ):
        assert words in message
    assert sum("Did you mean" in message for _, message in said) >= 6


@pytest.mark.parametrize(
    ("text", "row", "message"),
    [
        ("x = [\n\n", None, "not valid TOML"),
        ("x = 1\ny = = 2\n", 2, "not valid TOML"),
        ('exclude = ["a"]\ncache-dir = "../x"\n', 2, "`cache-dir` leads out of"),
        ("fail-on = 'x'", 1, "`fail-on`"),
    ],
)
def test_other_files(run: Run, tmp_path: Path, text: str, row: int | None, message: str) -> None:
    (tmp_path / "other.toml").write_text(text)
    code, out, _ = run("check", "other.toml")
    assert code == 1
    assert out.startswith(f"other.toml:{f'{row}:' if row else ''} ")
    assert message in out
    assert out.count("\n") == 1


def test_nothing_wrong(run: Run, tmp_path: Path) -> None:
    (tmp_path / "torchmemlint.toml").write_text('select = ["TML1"]\n')
    assert run("check") == (0, "", "notice: nothing is wrong with the configuration\n")
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text("[tool.torchmemlint]\nslect = 1\n")  # passed over: the other one counts
    assert run("check")[0] == 0
    assert run("check", "pyproject.toml", "torchmemlint.toml")[0] == 1
    assert run("check", "nothing.toml")[0] == 2


def test_problems_agree_with_the_reader(run: Run, tmp_path: Path) -> None:
    """Whatever stops a check is found, and nothing else is."""
    file = tmp_path / "torchmemlint.toml"
    for option in OPTIONS:
        if option.key in ("plugins", "contracts"):
            continue
        for value in ("1", '"x"', "[]", '["x"]', "{}", "true", '{"x" = "y"}'):
            file.write_text(f"{option.key} = {value}\n")
            stopped = main(["--show-settings"]) == 2
            assert run("check")[0] == int(stopped), (option.key, value)


def test_show_is_a_configuration_that_means_the_same(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "torchmemlint.toml"
    file.write_text(
        'preset = "strict"\nignore = ["TML3"]\nexclude = ["a b", "c\\"d"]\ntarget-torch = "2.4"\n'
        'confidence = "certain"\n'
        '[per-file-ignores]\n"tests/**" = ["TML2"]\n[severity]\nTML1 = "advice"\n'
    )
    before = Resolver(tmp_path).settings_for(tmp_path)
    code, out, err = run("show")
    assert (code, err) == (0, "")
    assert (
        "# preset (torchmemlint.toml:1), ignore (torchmemlint.toml:2), severity (torchmemlint.toml:8)\nselect = " in out
    )
    assert "# preset strict\nfail-on" in out
    assert "# torchmemlint.toml:6\nper-file-ignores" in out
    assert "# default\nrespect-gitignore = true" in out
    tomllib.loads(out)
    file.write_text(out.replace(f"cache-dir = {tomllib.loads(out)['cache-dir']!r}".replace("'", '"'), ""))
    after = Resolver(tmp_path).settings_for(tmp_path)
    for name in ("rules", "per_file_ignores", "severities", "fail_on", "confidence", "exclude", "target_torch"):
        assert getattr(after, name) == getattr(before, name), name
    assert after.measurements_file == before.measurements_file


def test_show_says_where_settings_come_from(run: Run, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[project]\ndependencies = ["torch>=2.3"]\n\n[tool.torchmemlint]\nfail-on = "error"\n'
    )
    rows = json.loads(run("show", "--output-format=json", "--config", "exclude = []")[1])
    assert rows["configuration"] == str(tmp_path / "pyproject.toml")
    where = {key: row["from"] for key, row in rows["settings"].items()}
    assert where["fail-on"] == "pyproject.toml:5"
    assert where["exclude"] == "command line"
    assert where["select"] == "default"
    assert where["target-torch"].startswith("what ")
    assert set(where) <= {option.key for option in OPTIONS}
    assert json.loads(run("show", "--isolated", "--output-format=json")[1])["configuration"] is None
    assert run("show", "nothing")[0] == 2
    (tmp_path / "pyproject.toml").write_text("[tool.torchmemlint]\nslect = 1\n")
    code, _, err = run("show")
    assert code == 2
    assert "slect" in err


def test_schema(run: Run) -> None:
    assert json.loads(run("schema")[1]) == settings_schema(registry.known())
    assert json.loads(run("schema", "--pyproject")[1])["properties"]["tool"]["properties"]["torchmemlint"]


def test_explain_is_the_default(run: Run) -> None:
    assert run("select") == run("explain", "select")
    assert run() == run("explain")
    code, _, err = run("chekc")
    assert code == 2
    assert "Did you mean `check`" in err


@pytest.mark.parametrize(
    ("keys", "row"),
    [
        (("a",), 1),
        (("t", "k"), 4),
        (("t", "k", "x"), 5),
        (("u", "v"), 6),
        (("w", "x"), 7),
        (("q q",), 8),
        (("no",), None),
    ],
)
def test_rows(keys: tuple[str, ...], row: int | None) -> None:
    text = 'a = 1\n# k = 2\n[t]\nk = ["a",\n  "x"]\nu.v = 1\nw = {x = 1}\n"q q" = 1\n'
    assert row_of(text, keys, whole=True) == row
