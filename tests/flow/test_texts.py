"""Searching a project's text: what is told again is told as it is now."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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


PARTS = st.lists(
    st.sampled_from(("def", "class", "as", " ", "  ", "\n", "(", ".", "x", "x1", "é", "_", "\r\n")), max_size=14
)


@settings(max_examples=300)
@given(files=st.lists(PARTS.map("".join), min_size=1, max_size=3), word=st.sampled_from(("def", "class", "as")))
def test_what_defines_a_name_is_found_as_in_the_whole_text(
    files: list[str], word: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("project")
    for number, text in enumerate(files):
        (folder / f"{number}.py").write_bytes(text.encode())
    project = Texts(folder)
    for name in ("x", "x1", "é", "_", "def", "xé", "def_x"):
        phrase = f"{word} {name}"
        places = ((folder / f"{number}.py", _count(phrase, text)) for number, text in enumerate(files))
        assert project.mentioning(phrase) == {path: count for path, count in places if count}


def _count(phrase: str, text: str) -> int:
    return sum(1 for _ in texts._places(phrase.encode(), f"\n{text}\n\n".encode()))
