"""Searching a project's text: what is told again is told as it is now."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchmemlint.flow import texts
from torchmemlint.flow.texts import Texts


@pytest.fixture
def project(tmp_path: Path) -> Texts:
    (tmp_path / "one.py").write_text("class Tensor:\n    pass\n\n\nclass Tensors(Tensor):\n    pass\n")
    (tmp_path / "two.py").write_text("from one import Tensor\n\nTensor()\n")
    return Texts(tmp_path)


def counts(project: Texts, phrase: str) -> dict[str, int]:
    found = project.mentioning(phrase)
    assert found is not None
    return {path.name: count for path, count in found.items()}


def test_words_are_found_and_not_parts_of_words(project: Texts) -> None:
    for _ in range(2):
        assert counts(project, "class Tensor") == {"one.py": 1}
        assert counts(project, "Tensor") == {"one.py": 2, "two.py": 2}
        assert counts(project, "Module") == {}


def test_an_edited_text_counts_in_place_of_the_file(project: Texts) -> None:
    assert counts(project, "Tensor") == {"one.py": 2, "two.py": 2}
    project.edited = {project.root / "two.py": "import one\n"}
    assert counts(project, "Tensor") == {"one.py": 2}
    project.edited = {project.root / "two.py": "from one import Tensor\n"}
    assert counts(project, "Tensor") == {"one.py": 2, "two.py": 1}
    project.edited = {}
    assert counts(project, "Tensor") == {"one.py": 2, "two.py": 2}


def test_answers_are_let_go_when_they_become_many(project: Texts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "MAX_ANSWERS", 3)
    for _ in range(2):
        for phrase in ("Tensor", "class Tensor", "import", "one", "Tensors", "pass"):
            assert counts(project, phrase) == counts(Texts(project.root), phrase)
    assert sum(1 + len(answer) for answer in project._answers.values()) <= 3 + 3
