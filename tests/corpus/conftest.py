import contextlib
import io
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.leaking import LEAK
from torchmemlint.cli.main import main

COMMIT = ("git", "-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "--quiet", "--message=All")


def command(*arguments: object) -> tuple[int, str, str]:
    """The exit code of a command line, and what it wrote."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(argument) for argument in arguments])
    return code, out.getvalue(), err.getvalue()


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Makes a list: a folder, a tarball, a zip file and a repository, each with the leak; and what else is named."""
    monkeypatch.chdir(write(tmp_path / "work", {".torchmemlint.toml": ""}))
    write(Path("folder"), {"src/a.py": LEAK, "src/plain.py": "x = 1\n", "src/b.py": "import torch\n"})
    with tarfile.open("packed-1.0.tar.gz", "w:gz") as tar:
        files = {"leak.py": LEAK, "pyproject.toml": '[tool.torchmemlint]\nseverity = {TML101 = "advice"}\n'}
        tar.add(write(tmp_path / "t", files), "packed-1.0")
    with zipfile.ZipFile("zipped.zip", "w") as packed:
        packed.writestr("pkg/__init__.py", "")
        packed.writestr("pkg/leak.py", LEAK)
        packed.writestr("pkg/data.bin", "no source")
    repository = write(tmp_path / "repository", {"train/leak.py": LEAK})
    for step in (("git", "init", "--quiet"), ("git", "add", "."), COMMIT):
        subprocess.run(step, cwd=repository, check=True)

    def make(*more: object) -> Path:
        lines = ["# a corpus", "", "folder", "  packed-1.0.tar.gz  ", "zipped.zip", f"file://{repository}", *more]
        Path("projects.txt").write_text("".join(f"{line}\n" for line in lines))
        return Path("projects.txt")

    return make
