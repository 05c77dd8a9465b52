"""The release of torch that a project requires."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from torchmemlint.config.requirement import oldest_torch
from torchmemlint.config.resolver import Resolver


@pytest.mark.parametrize(
    ("name", "text", "oldest"),
    [
        ("setup.py", 'setup(install_requires=["numpy", "torch>=2.1,<2.3", "torchtext"])', "2.1"),
        ("setup.py", 'setup(install_requires=["torch<2.3"])', "2.2"),
        ("setup.py", 'setup(install_requires=["torch", "torchvision>=0.16"])', None),
        ("setup.cfg", "[options]\ninstall_requires =\n    numpy\n    torch >= 1.13\n", "1.13"),
        ("requirements.txt", "# torch>=1.0\ntorch==2.4.1  # pinned\n", "2.4"),
        ("requirements.txt", "pytorch-lightning>=2.0\ntorchmetrics>=1.2\n", None),
        ("pyproject.toml", '[project]\nname = "x"\ndependencies = ["torch~=2.2; python_version > \'3.9\'"]\n', "2.2"),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = "^2.0"\n', "2.0"),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = {version = "<=2.5", optional = true}\n', "2.5"),
        ("pyproject.toml", '[project]\ndependencies = ["torch', None),
    ],
)
def test_what_a_project_requires(tmp_path: Path, name: str, text: str, oldest: str | None) -> None:
    (tmp_path / name).write_text(text)
    assert oldest_torch(tmp_path) == oldest


def test_the_configuration_wins(tmp_path: Path) -> None:
    (tmp_path / "setup.py").write_text('setup(install_requires=["torch>=2.0"])')
    assert Resolver(tmp_path, isolated=True).fallback().target_torch == "2.0"
    (tmp_path / "torchmemlint.toml").write_text('target-torch = "2.6"')
    assert Resolver(tmp_path).settings_for(tmp_path).target_torch == "2.6"


def test_an_empty_list_takes_no_time(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("\n" * 300_000)
    began = time.process_time()
    assert oldest_torch(tmp_path) is None
    assert time.process_time() - began < 2
