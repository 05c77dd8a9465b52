"""What holds for any program: nothing raises, fixes come to rest; line ends, blank lines, hash seeds change nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from programs import compiles, mutations, programs

import torchmemlint
from torchmemlint.engine.checking import check_text
from torchmemlint.engine.one_file import ABOUT_THE_RUN
from torchmemlint.findings import Finding, Severity
from torchmemlint.fixes.apply import FixResult, fix_text
from torchmemlint.rules.registry import all_rules
from torchmemlint.source.decoding import UnreadableFile

FIXTURES = [
    path
    for path in sorted((Path(__file__).parent.parent / "fixtures").glob("TML*/*.py"))
    if not path.name.endswith(".fixed.py")
]
TEXTS = [path.read_text() for path in FIXTURES]
CODES = frozenset(rule.code for rule in all_rules()) - ABOUT_THE_RUN
PATH = Path("program.py")
PACKAGE = str(Path(torchmemlint.__file__).parent.parent)  # this one, should another be installed

# Hours of examples are for the one who looks for trouble: TORCHMEMLINT_EXAMPLES=20000 pytest tests/test_properties.py
settings.register_profile(
    "here",
    max_examples=int(os.environ.get("TORCHMEMLINT_EXAMPLES", "60")),
    deadline=None,
    derandomize="TORCHMEMLINT_EXAMPLES" not in os.environ,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
here = settings.get_profile("here")


def anew(text: str) -> list[Finding]:
    """The findings of a text, whether it was checked before or not."""
    return check_text(text, PATH, CODES)


@lru_cache(4_000)  # the fixtures, and what fixes make of them: several tests ask for these
def known(text: str) -> tuple[Finding, ...]:
    return tuple(anew(text))


def check(text: str) -> list[Finding]:
    return list(known(text))


def fix(text: str, *, unsafe: bool = False) -> FixResult:
    return fix_text(text, check(text), check, unsafe=unsafe)


def plain(findings: list[Finding]) -> Any:
    """Findings as JSON knows them."""
    return json.loads(json.dumps([asdict(finding) for finding in findings], default=str))


@settings(here)
@given(programs())
def test_no_program_raises(text: str) -> None:
    if compiles(text):
        check(text)
    else:
        try_to_check(text)


@settings(here, max_examples=2 * here.max_examples)
@given(mutations(TEXTS))
def test_no_mutation_of_a_fixture_raises(text: str) -> None:
    try_to_check(text)


def try_to_check(text: str) -> None:
    try:
        check(text)
    except UnreadableFile as problem:
        assert "\n" not in problem.message  # noqa: PT017 (most programs are readable)


@settings(here)
@given(programs(), st.booleans())
def test_fixes_come_to_rest_with_a_program_that_compiles(text: str, unsafe: bool) -> None:
    assume(compiles(text))
    comes_to_rest(text, unsafe=unsafe)


@settings(here)
@given(mutations(TEXTS), st.booleans())
def test_fixes_of_mutated_fixtures_come_to_rest(text: str, unsafe: bool) -> None:
    assume(compiles(text))
    comes_to_rest(text, unsafe=unsafe)


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: f"{path.parent.name[:6]}-{path.stem}")
def test_fixes_of_fixtures_come_to_rest(path: Path) -> None:
    comes_to_rest(path.read_text(), unsafe=True)


def comes_to_rest(text: str, *, unsafe: bool) -> None:
    result = fix(text, unsafe=unsafe)
    assert compiles(result.text)
    assert plain(list(result.findings)) == plain(check(result.text))
    assert by_severity(result.findings) < by_severity(check(text)) or not result.applied
    again = fix(result.text, unsafe=unsafe)
    assert again.text == result.text
    assert again.applied == ()


def by_severity(findings: Sequence[Finding]) -> tuple[int, ...]:
    """How many of each severity, errors first: a fix may uncover what is less severe than what it mends."""
    found = Counter(finding.severity for finding in findings)
    return tuple(found[severity] for severity in (Severity.ERROR, Severity.WARNING, Severity.ADVICE))


@settings(here, max_examples=here.max_examples // 2)  # each is checked and fixed twice
@given(st.one_of(programs(), mutations(TEXTS)))
def test_line_ends_do_not_matter(text: str) -> None:
    assume("\r" not in text and compiles(text))
    twin = text.replace("\n", "\r\n")
    assert without_edits(check(twin)) == without_edits(check(text))
    assert fix(twin, unsafe=True).text == fix(text, unsafe=True).text.replace("\n", "\r\n")


def without_edits(findings: list[Finding]) -> Any:
    """Findings but for the text that their fixes insert, which has the file's own line ends."""
    found = plain(findings)
    for finding in found:
        for edit in (finding["fix"] or {"edits": ()})["edits"]:
            edit["content"] = edit["content"].replace("\r\n", "\n")
    return found


@pytest.mark.slow
@settings(here)
@given(st.one_of(programs(), st.sampled_from(TEXTS)), st.lists(st.sampled_from(["", "# a comment", "   "]), max_size=4))
def test_lines_on_top_move_the_rows_and_nothing_else(text: str, above: list[str]) -> None:
    assume(compiles(text))
    moved = "".join(line + "\n" for line in above) + text
    assert plain(check(moved)) == shifted(plain(check(text)), len(above))


def shifted(data: Any, rows: int) -> Any:
    if isinstance(data, list):
        return [shifted(item, rows) for item in data]
    if isinstance(data, dict):
        return {key: value + rows if key == "row" else shifted(value, rows) for key, value in data.items()}
    return data


SERVER = """
import sys, json
from test_properties import anew, plain
for line in sys.stdin:
    try:
        found = plain(anew(json.loads(line)))
    except Exception as problem:
        found = repr(problem)
    print(json.dumps(found), flush=True)
"""
Ask = Callable[[str], Any]


class OtherProcess:
    """A process with another hash seed than this one's."""

    def __init__(self) -> None:
        self._server: subprocess.Popen[str] | None = None

    def ask(self, text: str) -> Any:
        """The findings of a text, or what is raised; fails where the process dies of it."""
        self._server = server = self._server or self._started()
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(text) + "\n")
        server.stdin.flush()
        answer = server.stdout.readline()
        if not answer:
            self._server = None  # the next text gets another
            pytest.fail(f"the process died: {server.wait()}")
        return json.loads(answer)

    def _started(self) -> subprocess.Popen[str]:
        seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
        root = Path(__file__).parent
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join((str(root), PACKAGE))}
        command, pipe = [sys.executable, "-c", SERVER], subprocess.PIPE
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=root, env=environment)

    def end(self) -> None:
        if self._server is not None:
            self._server.communicate()


@pytest.fixture(scope="module")
def other_process() -> Iterator[Ask]:
    """Checks a text as a process with another hash seed does."""
    process = OtherProcess()
    yield process.ask
    process.end()


@pytest.mark.slow
@settings(here, max_examples=here.max_examples // 2)  # each is checked three times
@given(text=programs())
def test_programs_have_the_same_findings_in_any_process(other_process: Ask, text: str) -> None:
    assume(compiles(text))
    found = plain(anew(text))
    assert plain(anew(text)) == found
    assert other_process(text) == found


@pytest.mark.slow
def test_fixtures_have_the_same_findings_in_any_process(other_process: Ask) -> None:
    for text in TEXTS:
        assert other_process(text) == plain(check(text))


@pytest.mark.parametrize("depth", [30, 280, 3_000])
@pytest.mark.parametrize(
    ("opening", "middle", "closing"),
    [
        ("x = ", "(", "1)"),
        ("x = ", "[", "]"),
        ("x = y", ".a", ""),
        ("x = 1", " + y", ""),
        ("x = 'a'", " 'a'", ""),
        ("x = ", "not ", "y"),
        ("x = ", "-", "y"),
        ("x = ", "f(", "y)"),
        ("x = f", "(y)", ""),
        ("x = model", "[0]", ""),
        ("x = ", "lambda: ", "y"),
        ("x = ", "1 if y else ", "2"),
        ("if x:\n    pass\n", "elif x:\n    pass\n", ""),
        ("x = loss", ".detach()", ""),
        ("", "x = x + model(x)\n", ""),
        ("", "for x in y: ", "pass"),
    ],
)
def test_depth_ends_no_process(other_process: Ask, opening: str, middle: str, closing: str, depth: int) -> None:
    """In another process: what overflows the stack of a compiled parser cannot be caught."""
    body = opening + middle * depth + "".join(closing for _ in range(depth if closing in ("1)", "]", "y)") else 1))
    text = "import torch\n\n\ndef train(model, loss, y):\n" + "".join(f"    {line}\n" for line in body.splitlines())
    answer = other_process(text)
    assert isinstance(answer, list) or answer.startswith(("UnreadableFile(", "LimitReached("))
    assert "\\n" not in answer


def nested_blocks(depth: int) -> str:
    lines = [f"{'    ' * level}{('for x in y:', 'if x:', 'with x:', 'while x:')[level % 4]}" for level in range(depth)]
    return "\n".join(["import torch", *lines, "    " * depth + "x = model(x)"]) + "\n"


@pytest.mark.parametrize("depth", [5, 18, 90])
def test_nested_blocks(depth: int) -> None:
    try_to_check(nested_blocks(depth))


@pytest.mark.parametrize("depth", [5, 18, 90])
def test_nested_functions(depth: int) -> None:
    lines = [f"{'    ' * level}def f{level}(x):" for level in range(depth)]
    lines += [f"{'    ' * level}return f{level}(x) + model(x)" for level in range(depth, 0, -1)]
    try_to_check("\n".join(["import torch", *lines]) + "\n")
