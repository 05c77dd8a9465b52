from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


@pytest.fixture
def scaling(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    import scaling

    return scaling


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project-1.0"
    (folder / "package").mkdir(parents=True)
    (folder / "package" / "layers.py").write_text("import torch\n")
    (folder / "package" / "names.py").write_text("NAMES = []\n")
    return folder


def test_everything_is_measured_in_turn(scaling, project, tmp_path, monkeypatch, capsys) -> None:
    taken: list[tuple[str, ...]] = []
    texts: list[str] = []

    def measure(command, statuses):
        taken.append(tuple(command))
        if "--cache-dir" in command:
            texts.append(Path(command[-1], "copy0", "package", "layers.py").read_text())
        files = 2 * (8 if command[-1].endswith("x8") else 1)
        seconds = 1.0 if "parse_all.py" in command[1] else 2.0 if "1" in command else files * 1.5
        return scaling.Measurement(seconds, seconds, 50_000_000, 60_000_000)

    monkeypatch.setattr(scaling, "measure", measure)
    words = ["scaling.py", str(project), "--copies", "1,8", "--repetitions", "2", "--cache", str(tmp_path), "--json"]
    monkeypatch.setattr(sys, "argv", words)
    assert scaling.main() == 0
    found = json.loads(capsys.readouterr().out)
    names = ["ast.parse", "one process", "two processes", "1 x", "8 x", "one file changed", "warm", "--version"]
    assert [case["name"] for case in found["cases"]] == names
    assert [case["files"] for case in found["cases"]] == [2, 2, 2, 2, 16, 2, 2, 0]
    assert len(taken) == 3 * len(names)
    assert taken[: len(names)] == taken[len(names) : 2 * len(names)]
    assert found["figures"] == {
        "two processes, times ast.parse": 3.0,
        "one process / two": pytest.approx(2 / 3),
        "a file, 8 x / 1 x": 1.0,
    }
    # Before each warm run one file has changed, and never back to what is known; nothing has since.
    assert texts[::2] == texts[1::2]
    assert len({"import torch\n", *texts}) == 4
    assert (project / "package" / "layers.py").read_text() == "import torch\n"


def test_the_table_has_a_row_for_each_case_and_says_what_it_comes_to(scaling) -> None:
    results = [
        scaling.Result("ast.parse", 10, 2.0, 2.0, 30_000_000),
        scaling.Result("one process", 10, 9.0, 9.0, 90_000_000),
        scaling.Result("two processes", 10, 5.0, 10.0, 80_000_000),
        scaling.Result("1 x", 10, 5.0, 10.0, 80_000_000),
        scaling.Result("2 x", 20, 11.0, 22.0, 80_000_000),
    ]
    lines = scaling.table(results).splitlines()
    assert "| 2 x | 20 | 11.00 | 5.50 | 22.00 | 1100.0 | 80 |" in lines
    assert "- one process / two: 1.80" in lines
    assert "- two processes, times ast.parse: 2.50" in lines
    assert "- a file, 2 x / 1 x: 1.10" in lines


@pytest.mark.parametrize("words", [["--copies", "0"], ["--copies", "many"], ["--repetitions", "0"]])
def test_what_cannot_be_measured_is_refused(scaling, monkeypatch, capsys, words) -> None:
    monkeypatch.setattr(sys, "argv", ["scaling.py", *words])
    with pytest.raises(SystemExit) as left:
        scaling.main()
    assert left.value.code == 2
    assert "begin at 1" in capsys.readouterr().err
