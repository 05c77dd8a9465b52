"""The examples of the documents about the API run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
BY_HAND = (ROOT / "docs/api.md").read_text(encoding="utf-8").partition("## Reference")[0]
EXAMPLES = BLOCK.findall(BY_HAND)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "loop.py").write_text("import torch\n\nwith torch.no_grad():\n    pass\n")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(compile(EXAMPLES[number], f"docs/api.md, example {number + 1}", "exec"), names)
    for name, value in names.items():
        if name.startswith("test_") and callable(value):
            value()


def test_there_are_examples_of_all_functions() -> None:
    assert all(any(name in example for example in EXAMPLES) for name in ("check_source", "fix_source", "check_paths"))
