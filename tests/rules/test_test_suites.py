"""Rules whose findings are worth nothing in tests: however deep in a suite their file lies."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchmemlint.engine.checking import check_text
from torchmemlint.flow.project import Project

FIXTURES = Path(__file__).parents[2] / "fixtures"


@pytest.mark.parametrize(
    "fixture",
    [
        "TML301-out-of-place-activation/bad_forward.py",
        "TML304-materialised-attention/bad_heads.py",
        "TML310-implicit-reentrant-checkpoint/bad_blocks.py",
    ],
)
def test_files_of_a_suite_are_not_reported(fixture: str) -> None:
    text, code = (FIXTURES / fixture).read_text(encoding="utf-8"), frozenset({fixture[:6]})
    project = Project(Path("/tests/project"))
    assert check_text(text, project.root / "src/models/some/layers.py", code, project)
    for path in ("tests/policies/rtc/test_modeling.py", "tests/models/some/layers.py"):
        assert check_text(text, project.root / path, code, project) == []
    test = text + "\n\ndef test_layers():\n    pass\n"
    for path in ("src/test_layers.py", "src/layers_test.py", "src/conftest.py"):
        assert check_text(test, project.root / path, code, project) == []


@pytest.mark.parametrize("name", ["test_net.py", "net_test.py"])
def test_a_script_that_runs_a_model_on_a_test_set_is_no_test(name: str) -> None:
    """`python test_net.py --weights best.pt`: it defines no tests, whatever its name."""
    fixture = FIXTURES / "TML201-eval-without-no-grad" / "bad_act.py"
    text, codes = fixture.read_text(encoding="utf-8"), frozenset({"TML201"})
    assert check_text(text, Path("/project/tools", name), codes)
    case = "\n\nclass TestNet(Base):\n    def test_net(self):\n        pass\n"
    assert check_text(text + case, Path("/project/tools", name), codes) == []
