"""The release of torch that a project requires."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from torchmemlint.config.requirement import required_torch
from torchmemlint.config.resolver import Resolver


@pytest.mark.parametrize(
    ("name", "text", "oldest"),
    [
        ("setup.py", 'setup(install_requires=["numpy", "torch>=2.1,<2.3", "torchtext"])', "2.1"),
        ("setup.py", 'setup(install_requires=["torch<2.3"])', "2.2"),
        ("setup.py", 'setup(install_requires=["torch", "torchvision>=0.16"])', None),
        ("setup.cfg", "[options]\ninstall_requires =\n    numpy\n    torch >= 1.13\n", "1.13"),
        ("requirements.txt", "# torch>=1.0\ntorch==2.4.1  # pinned\n", "2.4"),
        ("requirements.txt", "torch>=1.13\ntorchvision>=0.14\ntqdm\ntransformers>=4.36\n", "1.13"),
        ("setup.cfg", "[options]\ninstall_requires =\n    torch\n    transformers>=4.36\n", None),
        ("requirements.txt", "pytorch-lightning>=2.0\ntorchmetrics>=1.2\n", None),
        ("pyproject.toml", '[project]\nname = "x"\ndependencies = ["torch~=2.2; python_version > \'3.9\'"]\n', "2.2"),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = "^2.0"\n', "2.0"),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = {version = "<=2.5", optional = true}\n', "2.5"),
        ("pyproject.toml", '[project]\ndependencies = ["torch', None),
        ("environment.yml", "dependencies:\n  - python=3.8\n  - pytorch-cuda=11.7\n  - pytorch=1.7.1=py3.8_0\n", "1.7"),
        ("environment.yaml", "dependencies:\n- pytorch::pytorch>=1.13  # or newer\n- torchvision=0.14\n", "1.13"),
        (
            "environment.yml",
            "dependencies:\n  - pip:\n    - 'torch==2.1.0+cu118'\n    - pytorch-lightning==1.0\n",
            "2.1",
        ),
        ("environment.yml", "dependencies:\n  - pytorch\n  - python>=3.9\n", None),
        ("requirements.txt", "torch!=1.5\n", None),
        ("requirements.txt", "torch>=2\n", "2.0"),
        ("requirements.txt", "torch<2\n", "1.13"),
        ("requirements.txt", "torch<1\n", None),
        ("pip_requirements.txt", "torch==1.13.1\n", "1.13"),
        ("conda_env.yml", "dependencies:\n- pytorch=1.2\n", "1.2"),
        ("saint_environment.yml", "dependencies:\n  - pytorch=1.8.1=py3.8_cuda11.1\n", "1.8"),
        ("environment_gpu.yaml", "dependencies:\n- pytorch=1.6\n", "1.6"),
        ("mkdocs.yml", "dependencies:\n- pytorch=1.6\n", None),
    ],
)
def test_what_a_project_requires(tmp_path: Path, name: str, text: str, oldest: str | None) -> None:
    (tmp_path / name).write_text(text)
    found = required_torch(tmp_path)
    assert (found.release if found is not None else None) == oldest


def test_the_usual_names_come_first(tmp_path: Path) -> None:
    (tmp_path / "a_requirements.txt").write_text("torch==1.4\n")
    (tmp_path / "requirements.txt").write_text("torch==2.1\n")
    found = required_torch(tmp_path)
    assert found is not None
    assert (found.release, found.file.name) == ("2.1", "requirements.txt")


def test_the_configuration_wins(tmp_path: Path) -> None:
    (tmp_path / "setup.py").write_text('setup(install_requires=["torch>=2.0"])')
    assert Resolver(tmp_path, isolated=True).fallback().target_torch == "2.0"
    (tmp_path / "torchmemlint.toml").write_text('target-torch = "2.6"')
    assert Resolver(tmp_path).settings_for(tmp_path).target_torch == "2.6"


def test_the_nearest_file_that_names_a_release_counts(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch>=2.2\n")
    (tmp_path / "old" / "models").mkdir(parents=True)
    (tmp_path / "old" / "setup.py").write_text('setup(install_requires=["torch"])')
    (tmp_path / "old" / "requirements.txt").write_text("torch==1.7.1\ntorchvision==0.8.2\n")
    (tmp_path / "free").mkdir()
    (tmp_path / "free" / "requirements.txt").write_text("torch\n")
    for resolver in (Resolver(tmp_path), Resolver(tmp_path, isolated=True)):
        assert resolver.settings_for(tmp_path / "old" / "models").target_torch == "1.7"
        assert resolver.settings_for(tmp_path / "free").target_torch == "2.2"
        assert resolver.settings_for(tmp_path / "free") is resolver.settings_for(tmp_path)
    own = tmp_path / "old" / "models" / "torchmemlint.toml"
    own.write_text("")
    assert Resolver(tmp_path).settings_for(own.parent).target_torch is None, "its folder is the project's root"
    own.write_text('target-torch = "2.6"')
    assert Resolver(tmp_path).settings_for(own.parent).target_torch == "2.6"


def test_what_lies_above_the_project_has_no_say(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==1.7.1\n")
    (tmp_path / "project" / "src").mkdir(parents=True)
    for resolver in (Resolver(tmp_path / "project"), Resolver(tmp_path / "project", isolated=True)):
        assert resolver.settings_for(tmp_path / "project" / "src").target_torch is None
        assert resolver.settings_for(tmp_path).target_torch is None


def test_an_empty_list_takes_no_time(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("\n" * 300_000)
    began = time.process_time()
    assert required_torch(tmp_path) is None
    assert time.process_time() - began < 2
