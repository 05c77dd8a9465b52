import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from torchmemlint.config.settings import Settings
from torchmemlint.source.discovery import Discovery, MissingPathError, discover


def tree(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("import torch\n")


def look(root: Path, *paths: str, force: bool = False, **settings: object) -> Discovery:
    resolved = Settings(root=root, **settings)  # type: ignore[arg-type]
    return discover([root / path for path in paths or ("",)], lambda _: resolved, force_exclude=force)


def names(found: Discovery, root: Path) -> list[str]:
    return [file.relative_to(root).as_posix() for file in found.files]


def found(root: Path, *paths: str, force: bool = False, **settings: object) -> Sequence[str]:
    return names(look(root, *paths, force=force, **settings), root)


def test_python_files_in_a_fixed_order(tmp_path: Path) -> None:
    tree(tmp_path, "b.py", "a/z.py", "a/b.pyi", "a.py", "c.txt", "d.ipynb", "py", "e.pyc", "é/ü.py")
    assert found(tmp_path) == ["a/b.pyi", "a/z.py", "a.py", "b.py", "d.ipynb", "é/ü.py"]


@pytest.mark.parametrize("name", [".git", ".venv", "venv", "node_modules", "build", "dist", "__pycache__", ".tox"])
def test_default_exclusions(tmp_path: Path, name: str) -> None:
    tree(tmp_path, f"{name}/a.py", f"src/{name}/a.py", f"src/{name}_tools/a.py", f"src/{name}.py")
    assert found(tmp_path) == [f"src/{name}.py", f"src/{name}_tools/a.py"]
    assert found(tmp_path, name) == [f"{name}/a.py"]  # asked for by name
    assert found(tmp_path, name, force=True) == []


def test_named_files_are_checked_unless_forced(tmp_path: Path) -> None:
    tree(tmp_path, "build/a.py", "gen.py", "b.py")
    assert found(tmp_path, "build/a.py", "gen.py", extend_exclude=("gen.py",)) == ["build/a.py", "gen.py"]
    result = look(tmp_path, "build/a.py", "gen.py", "b.py", force=True, extend_exclude=("gen.py",))
    assert (names(result, tmp_path), result.excluded) == (["b.py"], 2)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("gen", ["a.py", "src/b.py"]),
        ("gen/", ["a.py", "src/b.py"]),
        ("/gen/", ["a.py", "src/b.py", "src/gen/d.py"]),
        ("src/gen", ["a.py", "gen/c.py", "src/b.py"]),
        ("*.py", []),
        ("src/**/d.py", ["a.py", "gen/c.py", "src/b.py"]),
        ("nothing", ["a.py", "gen/c.py", "src/b.py", "src/gen/d.py"]),
    ],
)
def test_exclude_patterns(tmp_path: Path, pattern: str, expected: list[str]) -> None:
    tree(tmp_path, "a.py", "src/b.py", "gen/c.py", "src/gen/d.py")
    assert found(tmp_path, extend_exclude=(pattern,)) == expected


def test_exclude_replaces_the_default(tmp_path: Path) -> None:
    tree(tmp_path, "build/a.py", "other/b.py")
    assert found(tmp_path, exclude=("other",)) == ["build/a.py"]


def test_named_directory_that_a_pattern_leaves_out(tmp_path: Path) -> None:
    tree(tmp_path, "gen/c.py", "gen/.venv/d.py")
    assert found(tmp_path, "gen", extend_exclude=("gen/",)) == ["gen/c.py"]


def test_patterns_do_not_reach_outside_the_root(tmp_path: Path) -> None:
    tree(tmp_path, "lib/other/a.py", "project/b.py")
    settings = Settings(root=tmp_path / "project", extend_exclude=("lib/",))
    assert len(discover([tmp_path / "lib" / "other"], lambda _: settings).files) == 1


def test_gitignore_at_every_level(tmp_path: Path) -> None:
    tree(tmp_path, "a.py", "out/b.py", "src/c.py", "src/out.py", "src/deep/d.py", "src/deep/keep.py", "src/tmp_e.py")
    (tmp_path / ".gitignore").write_text("# a comment\n\n/out/\nkeep.py\n")
    (tmp_path / "src" / ".gitignore").write_text("tmp_*\n")
    (tmp_path / "src" / "deep" / ".gitignore").write_text("d.py\n!keep.py\n")
    assert found(tmp_path) == ["a.py", "src/c.py", "src/deep/keep.py", "src/out.py"]
    everything = found(tmp_path, respect_gitignore=False)
    assert len(everything) == 7


def test_gitignore_above_the_named_directory(tmp_path: Path) -> None:
    tree(tmp_path, "src/a.py", "src/gen_b.py", "ignored/c.py")
    (tmp_path / ".gitignore").write_text("gen_*\nignored/\n")
    assert found(tmp_path, "src") == ["src/a.py", "src/gen_b.py"]  # not a repository: nothing above counts
    (tmp_path / ".git").mkdir()
    assert found(tmp_path, "src") == ["src/a.py"]
    assert found(tmp_path, "ignored") == ["ignored/c.py"]  # asked for by name
    assert found(tmp_path) == ["src/a.py"]


def test_odd_gitignore_is_harmless(tmp_path: Path) -> None:
    tree(tmp_path, "a.py", "b.py")
    (tmp_path / ".gitignore").write_bytes(b"!\nb.py\n\xff\xfe\n[\n\\\n")
    assert found(tmp_path) == ["a.py"]


def test_links(tmp_path: Path) -> None:
    tree(tmp_path, "real/a.py", "elsewhere/b.py")
    (tmp_path / "real" / "loop").symlink_to(tmp_path / "real", target_is_directory=True)
    (tmp_path / "real" / "again.py").symlink_to("a.py")
    (tmp_path / "real" / "from_outside.py").symlink_to(tmp_path / "elsewhere" / "b.py")
    (tmp_path / "real" / "dangling.py").symlink_to("nowhere.py")
    (tmp_path / "real" / "itself.py").symlink_to("itself.py")
    (tmp_path / "other").symlink_to(tmp_path / "real", target_is_directory=True)
    expected = ["real/a.py", "real/dangling.py", "real/from_outside.py", "real/itself.py"]
    assert found(tmp_path, "real") == expected
    assert found(tmp_path) == ["elsewhere/b.py", "real/a.py", "real/dangling.py", "real/itself.py"]


def test_no_file_twice(tmp_path: Path) -> None:
    tree(tmp_path, "src/a.py")
    (tmp_path / "link").symlink_to("src", target_is_directory=True)
    assert found(tmp_path, "src", "src/a.py", "src/../src/a.py", "") == ["src/a.py"]
    assert len(look(tmp_path, "src", "link").files) == 1
    assert len(look(tmp_path, "link").files) == 1


def test_directory_named_like_a_file(tmp_path: Path) -> None:
    tree(tmp_path, "x.py/inner.py")
    assert found(tmp_path) == ["x.py/inner.py"]
    assert found(tmp_path, "x.py") == ["x.py/inner.py"]


def test_pipe_is_never_opened(tmp_path: Path) -> None:
    tree(tmp_path, "a.py")
    os.mkfifo(tmp_path / "pipe.py")
    assert found(tmp_path) == ["a.py"]
    result = look(tmp_path, "pipe.py")
    assert (result.files, result.refused) == ((), 1)
    assert "not a regular file" in result.notices[0]


def test_named_files_that_are_not_python(tmp_path: Path) -> None:
    tree(tmp_path, "n.ipynb", "notes.md", "a.py")
    (tmp_path / "script").write_text("#!/usr/bin/env python3\nimport torch\n")
    result = look(tmp_path, "n.ipynb", "notes.md", "script", "a.py")
    assert names(result, tmp_path) == ["a.py", "n.ipynb", "script"]
    assert result.refused == 1
    assert "not a Python file" in result.notices[0]


def test_missing_path(tmp_path: Path) -> None:
    with pytest.raises(MissingPathError, match="nowhere"):
        look(tmp_path, "nowhere")


def test_unreadable_directory_does_not_stop_the_walk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(tmp_path, "a.py", "secret/b.py", "z/c.py")
    scandir = os.scandir

    def guarded(path: str) -> object:
        if str(path).endswith("secret"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)
    result = look(tmp_path)
    assert names(result, tmp_path) == ["a.py", "z/c.py"]
    assert "secret" in result.notices[0]
