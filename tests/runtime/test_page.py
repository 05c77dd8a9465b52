"""The HTML page: what it says, that it needs nothing from elsewhere, and how a real browser shows it."""

from __future__ import annotations

import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("jinja2")
from click.testing import CliRunner
from report.browser import CHROMIUM as BROWSER
from report.browser import different_rows

from torchmemlint.cli.main import cli

PROGRAM = """\
import torch
from torch import nn

model = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64))
total = 0
for step in range(12):
    loss = model(torch.randn(32, 64)).square().mean()
    total = total + loss
print("<script>", float(total))
"""
EMPTY = {"meta", "link", "line", "polygon", "br", "input", "img"}


class _Checked(HTMLParser):
    """Notes what is opened and closed, and every address."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attributes if name in ("src", "href", "action")]
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in EMPTY:
            assert self.open.pop() == tag

    def handle_data(self, text: str) -> None:
        self.texts.append(text)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    (folder / "tr&in.py").write_text(PROGRAM)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        arguments = [
            "verify",
            "--backend",
            "cpu",
            "--isolated",
            "--select",
            "TML101",
            "--html",
            "page.html",
            "tr&in.py",
        ]
        result = CliRunner().invoke(cli, arguments)
    assert (folder / "page.html").exists(), result.output
    return folder / "page.html"


def test_what_it_says(page: Path) -> None:
    checked = _Checked()
    checked.feed(page.read_text(encoding="utf-8"))
    assert not checked.open
    assert not checked.addresses  # self-contained
    text = " ".join(" ".join(checked.texts).split())
    for expected in ("tr&in.py", "Measured on cpu", "TML101", "graph-accumulation", "confirmed", "tr&in.py:8"):
        assert expected in text
    assert re.search(r"\d+\.\d KiB growth per step", text)


def test_the_page_of_a_trace(page: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(page.parent)
        arguments = ["trace", "--backend", "cpu", "--isolated", "--steps", "8", "--html", "trace.html", "tr&in.py"]
        result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 0, result.output
    checked = _Checked()
    checked.feed((page.parent / "trace.html").read_text(encoding="utf-8"))
    assert not checked.open
    text = " ".join(" ".join(checked.texts).split())
    for expected in ("What grows", "tr&in.py:8", "per turn of the loop at tr&in.py:6", "TML201"):
        assert expected in text


def test_nothing_of_the_program_is_markup(page: Path) -> None:
    assert "<script" not in page.read_text(encoding="utf-8")


@pytest.mark.skipif(BROWSER is None, reason="needs Chromium")
def test_a_browser_shows_it(page: Path, tmp_path: Path) -> None:
    assert BROWSER is not None
    picture = tmp_path / "page.png"
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1100,1400"]
    own = f"--user-data-dir={tmp_path / 'profile'}"
    command = [BROWSER, *options, own, f"--screenshot={picture}", page.as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    assert different_rows(picture.read_bytes()) > 200  # an empty page has one, an unstyled error message some dozens
    dump = subprocess.run(
        [BROWSER, *options, own, "--dump-dom", page.as_uri()], check=True, capture_output=True, text=True, timeout=120
    )
    assert "<polygon" in dump.stdout
    assert "confirmed" in dump.stdout
