"""Old code with some five hundred findings: it is moved, formatted and renamed, and only what is new is reported."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from torchmemlint.cli.main import main

from .repository import Repository, findings, turn_around

EQUAL_TO_AN_OLD_ONE = """

def train_two_epochs(model, loader, optimizer, device):
    criterion = nn.CrossEntropyLoss()
    model.train()
    total_loss = 0.0
    for images, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        total_loss += loss
    return total_loss / len(loader)
"""
IN_A_NEW_FILE = """import torch


def spread(p):
    with torch.no_grad:
        p.clamp_(-1, 1)
"""


@pytest.mark.slow
def test_old_findings_stay_out_and_new_ones_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository = Repository(tmp_path / "repository")
    monkeypatch.chdir(repository.root)
    repository.write("torchmemlint.toml", "")
    repository.add_old_code()
    assert main(("baseline", "create")) == 0
    repository.commit("old code")
    baseline = Path("torchmemlint-baseline.json").read_text()
    assert len(json.loads(baseline)["findings"]) >= 500
    assert findings() == []

    sources = sorted(repository.root.rglob("*.py"))
    before = {path: path.read_text() for path in sources}
    for path in sources:
        turn_around(path)
    moved = [path for path in sources if path.read_text() != before[path]]
    repository.format("--line-length=60")
    changed = [path for path in sources if path.read_text() != before[path]]
    assert len(moved) > 100
    assert len(changed) > 250
    repository.git("mv", "src/TML101_graph_accumulation", "src/sums")
    repository.git("mv", "src/TML102_graph_collection/bad_attribute_list.py", "src/collected.py")
    repository.commit("moved, formatted, renamed")
    assert findings() == []

    old = repository.root / "src/sums/bad_epoch_total.py"
    old.write_text(old.read_text().replace("\n\nif __name__", f"{EQUAL_TO_AN_OLD_ONE}\n\nif __name__"))
    within = repository.root / "src/sums/bad_copy_to_host.py"
    text = within.read_text()
    assert "loss.backward()" in text
    within.write_text(text.replace("loss.backward()", "loss.backward()\n        torch.cuda.empty_cache()", 1))
    repository.write("src/new.py", IN_A_NEW_FILE)
    new = findings()
    assert [(Path(one["filename"]).name, one["code"]) for one in new] == [
        ("new.py", "TML202"),
        ("bad_copy_to_host.py", "TML502"),
        ("bad_epoch_total.py", "TML101"),
    ]
    rows = old.read_text().split("\n")
    assert new[2]["location"]["row"] > rows.index("def train_two_epochs(model, loader, optimizer, device):")

    # What was new is taken in only when that is asked for.
    assert main(("baseline", "update")) == 0
    updated = json.loads(Path("torchmemlint-baseline.json").read_text())["findings"]
    assert len(updated) == len(json.loads(baseline)["findings"])
    assert not any("TML101_graph_accumulation" in entry["path"] for entry in updated)
    assert len(findings()) == 3
