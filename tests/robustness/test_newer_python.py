"""A Python that is newer than the one that this was written with, and sources that are."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

import torchmemlint
from tests.robustness.conftest import LEAK, Launch, Run
from torchmemlint.flow.ir.building import EXPRESSIONS, STATEMENTS

PACKAGE = Path(torchmemlint.__file__).parent
REMOVED = re.compile(  # from Python's library, up to 3.14, or not to be relied on any more
    r"\bast\.(?:Num|Str|Bytes|NameConstant|Ellipsis|Index|ExtSlice)\b|\b(?:pkgutil\.(?:find|get)_loader"
    r"|asyncio\.get_event_loop|importlib\.(?:abc\.(?:Traversable|ResourceReader)|find_loader)|imp\.load_source"
    r"|locale\.getdefaultlocale|sys\.last_type|ast\.AugLoad|datetime\.utcnow|shutil\.rmtree\([^)]*onerror)\b"
)
FORKED = re.compile(
    r"multiprocessing\.(?:Process|Pool|Queue)\(|ProcessPoolExecutor\((?![^)]*mp_context)"
)  # 3.14 forks no more
WHOLE = LEAK + "\n\ndef end(x):\n    try:\n        return x\n    finally:\n        return None\n"
NEWER = {  # PEPs 750, 758, 649
    "a template": ((3, 14), 'name = "x"\nshown = t"{name!r:>{9}} {name}"\n'),
    "exceptions without parentheses": ((3, 14), "try:\n    pass\nexcept ValueError, TypeError:\n    pass\n"),
    "a type parameter's default": ((3, 13), "def first[T = int](x: T) -> T:\n    return x\n"),
    "a type": ((3, 12), "type Batch[T] = list[T]\n"),
    "quotes within quotes": ((3, 12), 'x = {"a": 1}\nshown = f"{x["a"]}"\n'),
    "an annotation of what comes later": (
        (3, 0),
        "def first(x: Later) -> Later:\n    return x\n\n\nclass Later: ...\n",
    ),
}


@pytest.mark.parametrize("what", NEWER)
def test_newer_syntax_is_read_by_the_python_it_is_for_and_reported_by_others(
    project: Path, run: Run, what: str
) -> None:
    since, text = NEWER[what]
    (project / "a.py").write_text(LEAK + "\n\n" + text)
    (project / "b.py").write_text(LEAK)
    done = run()
    assert "b.py:9:9: TML101 [*]" in done.stdout
    assert ("a.py:9:9: TML101 [*]" in done.stdout) is (sys.version_info >= since)
    assert ("TML000" in done.stdout) is (sys.version_info < since)
    assert "internal error" not in done.stdout + done.stderr


def test_what_python_warns_of_in_other_peoples_code_is_no_concern_of_ours(project: Path, launch: Launch) -> None:
    """PEP 765 has it warn of a `return` in `finally`; escapes that are none may become errors."""
    (project / "a.py").write_text(WHOLE + '\n\nROW = "\\d"\n')
    done = launch("--no-cache", program=(sys.executable, "-W", "error", "-m", "torchmemlint"))
    assert done.stdout.startswith("a.py:9:9: TML101 [*]")
    assert done.stderr == ""


@pytest.mark.parametrize(("kind", "known"), [(ast.expr, EXPRESSIONS), (ast.stmt, STATEMENTS)])
def test_all_that_this_python_has_is_understood(kind: type[ast.AST], known: dict[type[ast.AST], object]) -> None:
    old = {"Num", "Str", "Bytes", "NameConstant", "Ellipsis"}  # of which the parser makes none
    kinds = {one for one in kind.__subclasses__() if one.__module__ == "ast" and one.__name__ not in old}
    assert {one.__name__ for one in kinds - known.keys()} <= {"Slice"}  # within `[...]`


@pytest.mark.parametrize("pattern", [REMOVED, FORKED], ids=["removed", "forked"])
def test_nothing_is_used_that_newer_pythons_lack(pattern: re.Pattern[str]) -> None:
    found = [
        f"{path.relative_to(PACKAGE)}: {found[0]}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if (found := pattern.search(path.read_text(encoding="utf-8")))
    ]
    assert not found
