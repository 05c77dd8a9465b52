"""Paths, patterns, addresses and line ends as Windows has them."""

from __future__ import annotations

from pathlib import Path, PureWindowsPath

import pytest
from pygls import uris

from tests.robustness.conftest import LEAK, MENDED, Run
from torchmemlint.config.errors import ConfigError
from torchmemlint.config.patterns import relative
from torchmemlint.config.resolver import Resolver
from torchmemlint.report.sarif.log import location
from torchmemlint.server.documents import path_of, uri_of

ROOT = PureWindowsPath("C:/Work/My Project")


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (r"C:\Work\My Project\src\gen\a.py", "src/gen/a.py"),
        (r"c:\work\my project\a.py", "a.py"),  # whatever the case
        (r"D:\Work\My Project\a.py", "a.py"),  # another drive: only its name
        (r"\\server\share\src\a.py", "a.py"),
    ],
)
def test_patterns_are_matched_with_slashes(path: str, found: str) -> None:
    assert relative(path, ROOT) == found


@pytest.mark.parametrize("pattern", ["src\\gen", "src\\gen\\*.py", "C:\\Work\\src", "c:/work", ".\\src"])
@pytest.mark.parametrize("key", ["exclude = [{0!r}]", "per-file-ignores = {{ {0!r} = ['TML101'] }}"])
def test_backslashes_between_folders_are_refused_and_not_taken_for_escapes(
    tmp_path: Path, pattern: str, key: str
) -> None:
    written = key.format("@").replace("'@'", f"'{pattern}'")
    (tmp_path / "torchmemlint.toml").write_text(f"{written}\n")
    with pytest.raises(ConfigError, match="folders are parted by `/`, on Windows as well"):
        Resolver(tmp_path).settings_for(tmp_path)


@pytest.mark.parametrize("pattern", ["a\\*b", "\\!x", "\\#x", "x\\ "])
def test_what_git_escapes_may_be_escaped(tmp_path: Path, pattern: str) -> None:
    (tmp_path / "torchmemlint.toml").write_text(f"exclude = ['{pattern}']\n")
    assert Resolver(tmp_path).settings_for(tmp_path).exclude == (pattern,)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (r"C:\Work\My Project\src\a é.py", {"uri": "src/a%20%C3%A9.py", "uriBaseId": "REPO"}),
        (r"c:\work\MY PROJECT\a.py", {"uri": "a.py", "uriBaseId": "REPO"}),
        (r"D:\other\a b.py", {"uri": "file:///D:/other/a%20b.py"}),
        (r"\\server\share\a.py", {"uri": "file://server/share/a.py"}),
        (r"src\a.py", {"uri": "src/a.py", "uriBaseId": "REPO"}),
    ],
)
def test_addresses_in_sarif(path: str, found: dict[str, str]) -> None:
    told = location(PureWindowsPath(path), ROOT)
    assert told["uri"] == found["uri"]
    assert ("uriBaseId" in told) is ("uriBaseId" in found)


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///c%3A/Users/a%20b/x.py", "c:/users/A b/X.py"),  # as VS Code writes it
        ("file:///C:/Users/x.py", "C:/Users/x.py"),
        ("file://server/share/x.py", "//server/share/x.py"),
    ],
)
def test_addresses_of_editors(monkeypatch: pytest.MonkeyPatch, uri: str, path: str) -> None:
    monkeypatch.setattr(uris, "IS_WIN", True)
    found = PureWindowsPath(str(path_of(uri)))
    assert found == PureWindowsPath(path)
    again = PureWindowsPath(str(path_of(uri_of(Path(str(found))))))
    assert again == found
    assert hash(again) == hash(PureWindowsPath(path))  # what is open is looked up by its path


def test_line_ends_and_a_mark_stay(project: Path, run: Run) -> None:
    file = project / "a.py"
    file.write_bytes(b"\xef\xbb\xbf" + LEAK.replace("\n", "\r\n").encode())
    assert run("--fix").returncode == 0
    assert file.read_bytes() == b"\xef\xbb\xbf" + MENDED.replace("\n", "\r\n").encode()


def test_a_configuration_with_line_ends_of_windows(project: Path, run: Run) -> None:
    (project / "torchmemlint.toml").write_bytes(b'exclude = ["a.py"]\r\n')
    assert run().returncode == 0
