"""Where a project begins."""

from pathlib import Path

import pytest

from torchmemlint.source.projects import context_root, project_above


@pytest.mark.parametrize("mark", [".git", "pyproject.toml", "setup.py"])
def test_the_nearest_folder_with_a_projects_file(tmp_path: Path, mark: str) -> None:
    (tmp_path / "README.md").touch()
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    (tmp_path / "a" / mark).touch()
    assert project_above(tmp_path / "a" / "b" / "c") == tmp_path / "a"
    assert project_above(tmp_path / "a") == tmp_path / "a"


@pytest.mark.parametrize("mark", [".git", "pyproject.toml", "torchmemlint.toml"])
def test_a_file_below_the_root_of_its_settings_belongs_there(tmp_path: Path, mark: str) -> None:
    (tmp_path / mark).touch()
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "pyproject.toml").touch()
    assert context_root(tmp_path / "a" / "train.py", tmp_path) == tmp_path


def test_in_a_folder_of_projects_a_file_belongs_to_its_own(tmp_path: Path) -> None:
    project = tmp_path / "several" / "a"
    (project / "src").mkdir(parents=True)
    (project / "setup.py").touch()
    several = tmp_path / "several"
    assert context_root(project / "src" / "train.py", several) == project
    assert context_root(several / "b" / "train.py", several) == several


def test_the_project_around_a_folder_is_not_looked_for(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "src").mkdir()
    assert context_root(tmp_path / "src" / "train.py", tmp_path / "src") == tmp_path / "src"


def test_a_file_elsewhere_belongs_to_the_project_it_lies_in(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    package = there / "src" / "package"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (there / "scripts").mkdir()
    (there / "README.md").touch()
    assert context_root(package / "model.py", here) == there
    assert context_root(there / "scripts" / "train.py", here) == there


def test_without_any_mark_it_is_the_folder_above_the_package(tmp_path: Path) -> None:
    package = tmp_path / "package" / "inner"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").touch()
    assert context_root(package / "model.py", tmp_path / "here") == tmp_path
