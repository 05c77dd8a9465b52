from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

import pytest

from torchmemlint.fixes import write
from torchmemlint.fixes.write import write_atomically


def test_content_changes_and_mode_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"old")
    path.chmod(0o751)
    write_atomically(path, b"new\r\n\xff")
    assert path.read_bytes() == b"new\r\n\xff"
    assert stat.S_IMODE(path.stat().st_mode) == 0o751
    assert [one.name for one in tmp_path.iterdir()] == ["a.py"]


def test_owner_stays_where_the_system_allows(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may give a file away")
    path = tmp_path / "a.py"
    path.write_bytes(b"old")
    os.chown(path, 12345, 12346)
    write_atomically(path, b"new")
    assert (path.stat().st_uid, path.stat().st_gid) == (12345, 12346)


def test_a_symbolic_link_stays_and_its_target_changes(tmp_path: Path) -> None:
    target = tmp_path / "real" / "a.py"
    target.parent.mkdir()
    target.write_bytes(b"old")
    link = tmp_path / "link.py"
    link.symlink_to(Path("real") / "a.py")
    write_atomically(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_a_failure_leaves_the_old_content_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail) if failing == "fsync" else monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [one.name for one in tmp_path.iterdir()] == ["a.py"]


def test_a_read_only_file_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"old")
    path.chmod(0o444)
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everything
    with pytest.raises(PermissionError, match="read-only"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"


def test_a_file_that_is_gone_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_atomically(tmp_path / "gone.py", b"new")
    assert list(tmp_path.iterdir()) == []


def test_a_new_file_comes_whole_and_with_the_usual_mode(tmp_path: Path) -> None:
    mask = os.umask(0o027)
    try:
        write_atomically(tmp_path / "new.json", b"new", create=True)
    finally:
        assert os.umask(mask) == 0o027
    assert (tmp_path / "new.json").read_bytes() == b"new"
    assert stat.S_IMODE((tmp_path / "new.json").stat().st_mode) == 0o640
    write_atomically(tmp_path / "new.json", b"newer", create=True)
    assert (tmp_path / "new.json").read_bytes() == b"newer"
    assert [one.name for one in tmp_path.iterdir()] == ["new.json"]
    with pytest.raises(FileNotFoundError):
        write_atomically(tmp_path / "no" / "new.json", b"new", create=True)


def test_all_names_of_a_file_keep_its_content(tmp_path: Path) -> None:
    path, other = tmp_path / "a.py", tmp_path / "b.py"
    path.write_bytes(b"old, and longer")
    os.link(path, other)
    write_atomically(path, b"new", before=b"old, and longer")
    assert path.read_bytes() == other.read_bytes() == b"new"
    assert path.samefile(other)
    assert {one.name for one in tmp_path.iterdir()} == {"a.py", "b.py"}


def test_a_file_with_other_names_keeps_the_old_content_where_it_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, other = tmp_path / "a.py", tmp_path / "b.py"
    path.write_bytes(b"old")
    os.link(path, other)
    overwrite, calls = write._overwrite, list[bytes]()

    def failing(file: BinaryIO, data: bytes) -> None:
        calls.append(data)
        overwrite(file, data[:2] if len(calls) == 1 else data)
        if len(calls) == 1:
            raise OSError("the disk is full")

    monkeypatch.setattr(write, "_overwrite", failing)
    with pytest.raises(OSError, match="full"):
        write_atomically(path, b"new")
    assert path.read_bytes() == other.read_bytes() == b"old"
    assert {one.name for one in tmp_path.iterdir()} == {"a.py", "b.py"}
