"""Which files import which, told from their text."""

from __future__ import annotations

from pathlib import Path

import pytest

from torchmemlint.flow.names.finder import InMemory
from torchmemlint.flow.names.importing import Imports, imported

ROOT = Path("/")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("import a", ["a"]),
        ("import a.b as c, d", ["a.b", "d"]),
        ("from a import b, c as d", ["a.b", "a.c"]),
        ("from a.b import (\n    c,\n    d,\n)\n", ["a.b.c", "a.b.d"]),
        ("from . import a", [".a"]),
        ("from ..a import b", ["..a.b"]),
        ("from a import *", ["a"]),
        ("def f():\n    from a import b\n", ["a.b"]),
        ("important = 1\nfrom_a = 2\n", []),
        ("x = 'import a'\n", []),
        ("import_module('a.b')", ["a.b"]),
        ("import_module('a.' + b)", ["a.*"]),
        ("import_module(f'a.b.{c}.d')", ["a.b.*"]),
        ("name = 'a.'\nimport_module(name + b)", ["a.*"]),
        ("name = 'a.' + b\n", []),
        ("import_module('.' + b, package)", [".*"]),
        ("import_module(f'.{b}', package)", [".*"]),
        ("owner, name = path.rsplit('.', 1)\nimport_module(owner)", []),
    ],
)
def test_imported_names(text: str, names: list[str]) -> None:
    assert list(imported(text)) == names


def imports(**texts: str) -> Imports:
    files = {ROOT / f"{name.replace('__', '/')}.py": text for name, text in texts.items()}
    finder = InMemory(ROOT, files)
    return Imports(files.items(), finder.place, lambda pattern, path: [], lambda text, outside: "json" in text)


def test_users_of_a_file() -> None:
    known = imports(a="", b="import a", c="from b import x", d="import json")
    assert known.users(ROOT / "a.py") == (ROOT / "b.py", ROOT / "c.py")
    assert known.users(ROOT / "c.py") == ()
    assert known.group(ROOT / "a.py") == (ROOT / "a.py",)


def test_files_that_import_each_other() -> None:
    known = imports(a="import b", b="import c", c="import a", d="import a")
    assert known.group(ROOT / "b.py") == (ROOT / "a.py", ROOT / "b.py", ROOT / "c.py")
    assert known.users(ROOT / "b.py") == (ROOT / "d.py",)


def test_a_file_next_to_the_one_that_imports() -> None:
    known = imports(one__main="import utils", one__utils="", two__main="import utils", two__utils="")
    assert known.users(ROOT / "one/utils.py") == (ROOT / "one/main.py",)


def test_another_text_of_a_file() -> None:
    known = imports(a="", b="import a")
    known.put(ROOT / "b.py", "import json")
    assert known.users(ROOT / "a.py") == ()


def test_files_that_matter() -> None:
    known = imports(a="import json", b="import a", c="import re")
    assert known.matter((ROOT / "a.py",))
    assert known.matter((ROOT / "b.py",))
    assert not known.matter((ROOT / "c.py",))


def test_a_large_library() -> None:
    """So many files that import each other are run one by one."""
    long = "# a comment\n" * 50_000
    known = imports(a=f"import b\n{long}", b=f"import a\n{long}", c=f"import a\n{long}", d=f"import d\n{long}")
    assert known.is_library(ROOT / "a.py")
    assert known.is_library(ROOT / "b.py")
    assert not known.is_library(ROOT / "c.py")
    assert not known.is_library(ROOT / "d.py")
    assert known.group(ROOT / "a.py") == (ROOT / "a.py",)
    assert known.circle(ROOT / "a.py") == (ROOT / "a.py", ROOT / "b.py")


def test_what_a_large_library_imports() -> None:
    """It belongs to the library."""
    long = "# a comment\n" * 50_000
    known = imports(a=f"import b\n{long}", b=f"import a, leaf\n{long}", leaf="import re", c="import leaf")
    library = tuple(ROOT / f"{name}.py" for name in ("a", "b", "leaf"))
    assert known.is_library(ROOT / "leaf.py")
    assert known.group(ROOT / "leaf.py") == (ROOT / "leaf.py",)
    assert [known.library(path) for path in library] == [library] * 3
    assert not known.is_library(ROOT / "c.py")
    assert known.library(ROOT / "c.py") == ()


def test_a_file_that_is_alone() -> None:
    """A library's files do not count: nothing but itself has to be run for it."""
    long = "# a comment\n" * 50_000
    known = imports(
        a=f"import b\n{long}", b=f"import a\n{long}", c="import a", d="import e", e="import re", f="import re"
    )
    assert [known.is_alone(ROOT / f"{name}.py") for name in "acdef"] == [False, True, False, False, True]
