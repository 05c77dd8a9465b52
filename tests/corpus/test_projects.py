import io
import json
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.leaking import LEAK
from torchmemlint.engine.corpus import checking, listing, opening
from torchmemlint.engine.corpus.listing import Kind, ListError, read_list
from torchmemlint.report.formats import FORMATS

from .conftest import command, write

pytestmark = pytest.mark.skipif(
    not hasattr(tarfile, "data_filter"), reason="this release of Python cannot unpack archives safely"
)
Make = Callable[..., Path]
FOUND = ["folder/src/a.py", "packed-1.0/leak.py", "repository/train/leak.py", "zipped/pkg/leak.py"]


def found(text: str) -> list[tuple[str, str, str]]:
    return [(one["filename"], one["code"], one["severity"]) for one in json.loads(text)]


def test_each_is_a_project_with_settings_and_a_name_of_its_own(corpus: Make, tmp_path: Path) -> None:
    (tmp_path / "temporary").mkdir()
    code, out, err = command("--projects-from", corpus(), "--output-format", "json")
    assert (code, err) == (1, "")
    assert found(out) == [(name, "TML101", "advice" if "packed" in name else "warning") for name in FOUND]


def test_groups_and_processes_make_no_difference(corpus: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    _, whole, _ = command("--projects-from", corpus(), "--output-format", "json")
    monkeypatch.setattr(checking, "_BYTES", 1)
    assert command("--projects-from", corpus(), "--output-format", "json", "--jobs", "1")[1] == whole


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_all_formats_name_the_files(corpus: Make, name: str) -> None:
    code, out, _ = command("--projects-from", corpus(), "--output-format", name, "--no-fold", "--color", "never")
    assert code == 1
    assert "torchmemlint-" not in out  # the temporary folder
    if name != "grouped":
        assert all(one in out for one in FOUND)
    if name == "sarif":
        results = json.loads(out)["runs"][0]["results"]
        assert [one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in results] == FOUND
    if name == "full":
        assert out.count("11 |     return total\n") == 4  # what is gone by now


def test_what_was_unpacked_is_gone(corpus: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    command("--projects-from", corpus())
    assert not list((tmp_path / "temporary").iterdir())


def test_the_list_may_come_by_standard_input(corpus: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(corpus().read_text()))
    assert len(found(command("--projects-from", "-", "--output-format", "json")[1])) == 4


def packed(path: Path, member: str, **attributes: Any) -> Path:
    info = tarfile.TarInfo(member)
    data = b"" if "type" in attributes else LEAK.encode()
    info.size = len(data)
    for name, value in attributes.items():
        setattr(info, name, value)
    with tarfile.open(path, "w:gz") as tar:
        tar.addfile(info, io.BytesIO(data))
    return path


def zipped(path: Path, member: str) -> Path:
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(member, LEAK)
    return path


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: packed(Path("evil.tar.gz"), "../../evil.py"), "outside the destination"),
        (lambda: zipped(Path("evil.zip"), "../evil.py"), "would lie outside of the folder"),
        (lambda: write(Path(), {"evil.zip": "no archive"}) / "evil.zip", "not a zip file"),
        (lambda: write(Path(), {"evil.tgz": "no archive"}) / "evil.tgz", "cannot be unpacked"),
        (lambda: "file:///nowhere/evil", "cannot be cloned"),
    ],
)
def test_a_project_that_cannot_be_had_is_an_error_and_all_others_are_checked(
    corpus: Make, make: Callable[[], object], reason: str
) -> None:
    code, out, err = command("--projects-from", corpus(make()), "--output-format", "json")
    assert code == 2
    assert err.startswith("error: ")
    assert reason in err
    assert [one[0] for one in found(out)] == FOUND
    assert not list(Path().parent.rglob("evil.py"))


def test_links_and_devices_stay_packed(tmp_path: Path) -> None:
    for number, kind in enumerate((tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE)):
        archive = packed(tmp_path / f"{number}.tar.gz", "p/a.py", type=kind, linkname="/etc/passwd")
        project = opening.open_project(listing.Listed(str(number), Kind.ARCHIVE, str(archive)), tmp_path)
        assert not list(project.folder.iterdir())


def test_an_archive_of_any_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "MAX_BYTES", 10)
    for archive in (packed(tmp_path / "a.tar.gz", "a.py"), zipped(tmp_path / "b.zip", "a.py")):
        with pytest.raises(opening.OpeningError, match="it holds more than"):
            opening.open_project(listing.Listed(archive.stem, Kind.ARCHIVE, str(archive)), tmp_path)


def test_a_configuration_that_cannot_be_used_concerns_its_project(corpus: Make) -> None:
    wrong = write(Path("wrong"), {"a.py": LEAK, "torchmemlint.toml": "selecct = []\n"})
    code, out, err = command("--projects-from", corpus(wrong), "--output-format", "json")
    assert code == 2
    assert "error: wrong/torchmemlint.toml: unknown configuration key `selecct`" in err
    assert len(found(out)) == 4


def test_names(tmp_path: Path) -> None:
    write(tmp_path, {"a/x/n.py": "", "b/x/n.py": "", "x.tar.gz": "", "y.whl": ""})
    text = "a/x\nb/x\nx.tar.gz\ny.whl\nhttps://example.org/some/x.git\ngit@example.org:some/thing\nhttps://example.org/..\n"
    names = [(one.name, one.kind) for one in read_list(text, "list", tmp_path)]
    kinds = [Kind.FOLDER, Kind.FOLDER, Kind.ARCHIVE, Kind.ARCHIVE, Kind.REPOSITORY, Kind.REPOSITORY, Kind.REPOSITORY]
    assert names == list(zip(["x", "x-2", "x-3", "y", "x-4", "thing", "root"], kinds, strict=True))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "list: names no project"),
        ("a\n\nnowhere\n", "list:3: nowhere: no such file or folder, and no URL"),
        ("a/n.py\n", "list:1: a/n.py: neither a folder nor an archive"),
        ("ext::sh -c evil\n", "no such file or folder, and no URL"),
        ("a\na/\n", "a is listed twice"),
        ("a/x\n.\n", "which is listed, too"),
    ],
)
def test_lists_that_cannot_be_used(tmp_path: Path, text: str, message: str) -> None:
    write(tmp_path, {"a/n.py": "", "a/x/n.py": ""})
    with pytest.raises(ListError, match=message):
        read_list(text, "list", tmp_path)


@pytest.mark.parametrize(
    "arguments",
    [("src",), ("--fix",), ("--diff",), ("--new-since", "HEAD"), ("--project-root", "."), ("--add-ignores",)],
)
def test_refused(corpus: Make, arguments: tuple[str, ...]) -> None:
    code, _, err = command("--projects-from", corpus(), *arguments)
    assert code == 2
    assert "--projects-from" in err


def test_no_such_list(corpus: Make) -> None:
    code, _, err = command("--projects-from", "nowhere.txt")
    assert code == 2
    assert "nowhere.txt: cannot be read: No such file or directory" in err
