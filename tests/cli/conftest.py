import io
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import fakes
import pytest

from torchmemlint.cli.main import main
from torchmemlint.engine import one_file


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Outcome]


@pytest.fixture(autouse=True)
def fake_rules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    fakes.install(monkeypatch)
    yield
    one_file._catalogue.cache_clear()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, out of reach of any configuration of ours."""
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / ".torchmemlint.toml").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(project: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    def call(*arguments: str, stdin: bytes | None = None) -> Outcome:
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capfd.readouterr()
        code = main(arguments)
        out, err = capfd.readouterr()
        return Outcome(code, out, err)

    return call
