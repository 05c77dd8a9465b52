import contextlib
import io
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.leaking import LEAK
from torchmemlint.census.counting import Found, Project, census_of
from torchmemlint.census.labels import LabelsError, read_labels, sample, wilson
from torchmemlint.cli.main import main

NOTHING = '{"schema_version": 1, "findings": []}'
SCHEMA = json.loads((files("torchmemlint.census") / "schema.json").read_text())


def command(*arguments: object) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(argument) for argument in arguments])
    return code, out.getvalue(), err.getvalue()


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three projects: one with two leaks, one clean, one that never mentions torch."""
    monkeypatch.chdir(tmp_path)
    contents = {
        "leaky/a.py": LEAK,
        "leaky/b.py": LEAK,
        "clean/a.py": "import torch\n" + "x = 1\n" * 77,
        "other/a.py": "x = 1\n" * 900,
    }
    for name, text in contents.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(text)
    Path("list.txt").write_text("leaky\nclean\nother\n")
    return tmp_path


def taken(*arguments: object) -> dict[str, Any]:
    code, out, err = command("census", *arguments, "--output-format", "json")
    assert (code, err) == (0, "")
    told: dict[str, Any] = json.loads(out)
    jsonschema.validate(told, SCHEMA)
    return told


def test_a_census_of_projects(corpus: Path) -> None:
    told = taken("--projects-from", "list.txt", "--isolated", "--select", "TML101")
    assert told["totals"] | {"severities": 0} == {
        "projects": 3,
        "projects_with_torch": 2,
        "torch_lines": 100,
        "findings": 2,
        "severities": 0,
    }
    (rule,) = told["rules"]
    assert (rule["code"], rule["findings"], rule["projects"]) == ("TML101", 2, 1)
    assert (rule["prevalence"], rule["per_thousand_lines"]) == (0.5, 20.0)
    sizes = [(one["name"], one["files"], one["lines"], one["torch_lines"], one["findings"]) for one in told["projects"]]
    assert sizes == [("clean", 1, 78, 78, 0), ("leaky", 2, 22, 22, 2), ("other", 1, 900, 0, 0)]
    places = [(one["project"], one["path"], one["row"], one["snippet"]) for one in told["findings"]]
    assert places == [("leaky", "a.py", 10, "total += loss"), ("leaky", "b.py", 10, "total += loss")]


def test_a_census_is_read_back(corpus: Path) -> None:
    told = taken("--projects-from", "list.txt", "--isolated")
    Path("census.json").write_text(json.dumps(told))
    assert taken("census.json") == told


def test_reports_of_check(corpus: Path) -> None:
    report = command("--projects-from", "list.txt", "--isolated", "--select", "TML101", "--output-format", "json")[1]
    Path("all.json").write_text(report)
    alone = command("leaky", "--isolated", "--select", "TML101", "--output-format", "json")[1]
    Path("alone.json").write_text(alone)
    Path("nothing.json").write_text(NOTHING)
    told = taken("all.json", "alone.json", "nothing.json")
    assert [(one["name"], one["files"], one["findings"]) for one in told["projects"]] == [
        ("alone", None, 2),
        ("leaky", None, 2),
        ("nothing", None, 0),
    ]
    assert told["rules"][0]["per_thousand_lines"] is None
    assert told["rules"][0]["prevalence"] == 0.6667


def test_the_table_and_the_page(corpus: Path) -> None:
    code, out, _ = command(
        "census", "--projects-from", "list.txt", "--isolated", "--select", "TML101", "--html", "c.html"
    )
    assert code == 0
    row = next(line.split() for line in out.splitlines() if line.startswith("TML101"))
    assert row == ["TML101", "graph-accumulation", "2", "0", "2", "0", "1", "50.0%", "20.000"]
    page = Path("c.html").read_text(encoding="ascii")
    assert "Findings by project" in page
    assert page.count('class="chart"') == 4
    assert "TML101 graph-accumulation" in page
    assert "http" not in page.replace("https://torchmemlint.readthedocs.io/rules/TML101/", "").replace("http-equiv", "")


def test_names_cannot_play_tricks_on_the_page(tmp_path: Path) -> None:
    from torchmemlint.census.page import page

    evil = "<script>alert(1)</script>"
    text = page(census_of([Project(evil)], [Found(evil, evil, 1, 1, "TML101", evil, "error", evil, "")], [evil]), {})
    assert "<script" not in text


def test_a_sample_is_drawn_read_and_counted(corpus: Path) -> None:
    asked = ("--projects-from", "list.txt", "--isolated", "--select", "TML101")
    assert command("census", *asked, "--sample", "5", "--labels", "labels.txt")[0] == 0
    rows = [line.split("\t") for line in Path("labels.txt").read_text().splitlines() if not line.startswith("#")]
    assert rows == [["leaky", f"{name}.py:10", "TML101", "?", "total += loss"] for name in "ab"]
    again = command("census", *asked, "--sample", "5", "--labels", "labels.txt")
    assert again[0] == 2  # what was written there is worth more
    Path("labels.txt").write_text(Path("labels.txt").read_text().replace("\t?\t", "\ttrue\t", 1))
    told = taken(*asked, "--labels", "labels.txt")["precision"]
    assert [(one["code"], one["true"], one["unread"], one["share"]) for one in told] == [("TML101", 1, 1, 1.0)]
    out = command("census", *asked, "--labels", "labels.txt")[1]
    assert "1/1" in out
    assert "100% (21-100%)" in out


def test_the_draw_depends_on_the_seed_alone() -> None:
    found = [Found("p", f"{number}.py", 1, 1, f"TML10{number % 2}", "n", "error", "m", "") for number in range(60)]
    drawn = sample(found, 5, 1)
    assert sample(reversed(found), 5, 1) == drawn
    assert sample(found, 5, 2) != drawn
    assert [one.code for one in drawn] == ["TML100"] * 5 + ["TML101"] * 5
    more = [*found, Found("p", "q.py", 1, 1, "TML201", "n", "error", "m", "")]
    assert sample(more, 5, 1)[:10] == drawn  # what is drawn of one rule does not depend on others


@pytest.mark.parametrize(
    ("hits", "of", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson(hits: int, of: int, low: float, high: float) -> None:
    """The examples of R. G. Newcombe, Statistics in Medicine 17 (1998) 857-872, table I, method 3."""
    assert wilson(hits, of) == pytest.approx((low, high), abs=1e-4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("p a.py:1 TML101 true x\n", "1 columns with tabs between"),
        ("p\ta.py:1\tTML101\tyes\tx\n", "the label is `yes`; it may be true, false, unclear or ?"),
        ("p\ta.py:1\tTML101\ttrue\tx\np\ta.py:1\tTML101\tfalse\tx\n", "the label is `false`, and `true`"),
    ],
)
def test_labels_that_cannot_be_used(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "labels.txt").write_text(text)
    with pytest.raises(LabelsError) as raised:
        read_labels([tmp_path / "labels.txt"])
    assert message in str(raised.value)


def test_a_finding_that_two_files_name_counts_once(tmp_path: Path) -> None:
    for number, label in enumerate(("?", "False", "false")):
        (tmp_path / f"{number}.txt").write_text(f"p\ta.py:1\tTML101\t{label}\tx\n")
    (told,) = read_labels(sorted(tmp_path.glob("*.txt")))
    assert (told.true, told.false, told.unread, told.share) == (0, 1, 0, 0.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "Give either REPORTS or --projects-from"),
        (("a.json", "--projects-from", "list.txt"), "Give either REPORTS or --projects-from"),
        (("nowhere.json",), "nowhere.json: cannot be read"),
        (("broken.json",), "broken.json: not JSON"),
        (("strange.json",), "neither the JSON of `check` nor of `census`"),
        (("old.json",), "a census of version 0"),
        (("nothing.json", "sub/nothing.json"), "the project `nothing` is in nothing.json, too"),
        (("nothing.json", "--sample", "3"), "--sample needs one --labels FILE"),
        (("nothing.json", "--labels", "nowhere.txt"), "nowhere.txt: cannot be read"),
    ],
)
def test_refused(corpus: Path, arguments: tuple[str, ...], message: str) -> None:
    Path("broken.json").write_text("{")
    Path("strange.json").write_text('[{"code": 1}]')
    Path("old.json").write_text('{"version": 0}')
    Path("nothing.json").write_text(NOTHING)
    Path("sub").mkdir()
    Path("sub/nothing.json").write_text(NOTHING)
    code, _, err = command("census", *arguments)
    assert code == 2
    assert message in " ".join(err.split())


def test_a_project_that_cannot_be_had_is_told(corpus: Path) -> None:
    Path("evil.zip").write_text("no archive")
    Path("list.txt").write_text("leaky\nevil.zip\n")
    code, out, err = command("census", "--projects-from", "list.txt", "--isolated", "--output-format", "json")
    assert code == 2
    assert "evil.zip: cannot be unpacked" in err
    told = json.loads(out)
    jsonschema.validate(told, SCHEMA)
    assert (len(told["errors"]), len(told["projects"])) == (1, 1)
