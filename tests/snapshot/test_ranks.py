"""Snapshots of several ranks in one report, and reports as SARIF."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import jsonschema
import pytest
from runtime.schemas import OOM, validate

from torchmemlint.cli.main import main

EXAMPLES = Path(__file__).parents[2] / "examples"
SARIF = json.loads((Path(__file__).parents[1] / "report/schemas/sarif-2.1.0.json").read_text(encoding="utf-8"))


@pytest.fixture
def ranks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Of two ranks, one of which allocated nothing."""
    monkeypatch.chdir(tmp_path)
    data = (EXAMPLES / "out_of_memory.pickle").read_bytes()
    idle = {**pickle.loads(data), "segments": [], "device_traces": [[]]}
    (tmp_path / "rank0.pickle").write_bytes(pickle.dumps(idle, protocol=4))
    (tmp_path / "rank1.pickle").write_bytes(data)
    (tmp_path / "out_of_memory.py").write_bytes((EXAMPLES / "out_of_memory.py").read_bytes())
    return tmp_path


def test_the_rank_that_failed_comes_first(ranks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["oom", "rank0.pickle", "rank1.pickle", "out_of_memory.py"]) == 1
    told = capsys.readouterr().out
    assert "2 ranks, the first of these in full\n    rank1.pickle cuda:0  peak 398.3 MiB" in told
    assert "TML304" in told
    assert main(["oom", "rank0.pickle", "rank1.pickle", "--output-format", "json"]) == 1
    values = json.loads(capsys.readouterr().out)
    validate(values, OOM)
    assert values["ranks"] == 2
    assert values["devices"][0]["device"] == "rank1.pickle cuda:0"
    assert values["checked"] is None


def test_a_rank_that_is_no_snapshot_is_named(ranks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (ranks / "rank2.pickle").write_bytes(pickle.dumps(print))
    assert main(["oom", "rank1.pickle", "rank2.pickle"]) == 2
    assert "error: rank2.pickle: " in capsys.readouterr().err
    assert main(["oom", "rank1.pickle", "rank3.pickle"]) == 2
    assert "rank3.pickle: cannot be read" in capsys.readouterr().err


def test_sarif_has_the_bytes_of_each_line(ranks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["oom", "rank1.pickle", ".", "--output-format", "sarif"]) == 1
    log = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator(SARIF).validate(log)
    (run,) = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    found = {}
    for result in run["results"]:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        place = result["locations"][0]["physicalLocation"]
        assert place["artifactLocation"]["uri"] == "out_of_memory.py"
        found[result["ruleId"], place["region"]["startLine"]] = result
    failed = found["out-of-memory", 20]
    assert failed["level"] == "error"
    assert failed["message"]["text"] == "out of memory: asked for 32.0 MiB on cuda:0: 26.4 MiB missing"
    attention = found["TML304", 21]
    assert attention["properties"]["bytes"] == 256 << 20
    assert attention["message"]["text"].startswith("256.0 MiB (64%) of what was live when memory ran out of cuda:0")
    assert "primaryLocationLineHash" in attention["partialFingerprints"]


def test_no_other_command_offers_sarif(ranks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "--output-format", "sarif", "out_of_memory.py"]) == 2
    assert "'sarif' is not one of 'text', 'json'" in capsys.readouterr().err
