"""Baselines and ignore comments under random edits. (The rules are stand-ins: see `fakes`.)"""

from __future__ import annotations

import ast
from pathlib import Path

import fakes
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from torchmemlint.baseline import Baseline, Sifted, sift
from torchmemlint.engine.ignores import ignore_all
from torchmemlint.engine.one_file import Profile, check_source
from torchmemlint.findings import Finding
from torchmemlint.fixes.apply import FixResult
from torchmemlint.syntax.scopes import Scopes

EVERYTHING = Profile(frozenset(fakes.BY_CODE))
RELAXED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)

Function = tuple[str, tuple[str, ...]]  # its name, and its statements
Files = dict[str, tuple[Function, ...]]

# Few of them, so that equal ones are frequent.
LEAKS = ("x = LEAK101", "x = f(LEAK101)", "x = LEAK102", "return LEAK101 + 1", "x = LEAK101, LEAK101", "f(LEAK201)")
HARMLESS = ("y = 1", "pass", "print('a')", "for z in y:\n        pass", "# a comment", "")
functions = st.tuples(
    st.sampled_from("abcdef"), st.lists(st.sampled_from(LEAKS + HARMLESS), min_size=1, max_size=5).map(tuple)
)
projects = st.dictionaries(
    st.sampled_from(("a.py", "b.py", "c/a.py")), st.lists(functions, max_size=4).map(tuple), min_size=1
)


def text_of(functions: tuple[Function, ...]) -> str:
    parts = (f"def {name}():\n" + "".join(f"    {one}\n" for one in body) + "    pass\n" for name, body in functions)
    return "import torch\n\n\n" + "\n\n".join(parts)


def found_in(texts: dict[str, str]) -> list[Finding]:
    return [one for name, text in sorted(texts.items()) for one in check_source(text, Path("/p") / name, EVERYTHING)]


def sifted(before: dict[str, str], after: dict[str, str]) -> Sifted:
    """What of the findings after an edit is in a baseline of those before."""

    def scope_of(texts: dict[str, str], finding: Finding) -> str:
        return Scopes(texts[finding.filename.relative_to("/p").as_posix()]).at(finding.span.start.row)

    empty = Baseline(Path("/p/baseline.json"))
    entries = tuple(empty.entry(finding, scope_of(before, finding)) for finding in found_in(before))
    written = Baseline(empty.file, entries)
    return sift(found_in(after), written, lambda finding: scope_of(after, finding), lends=lambda path: True)


@st.composite
def moved(draw: st.DrawFn, files: Files) -> Files:
    """The same functions in another order, in files of other names, with harmless statements among theirs."""
    everything = draw(st.permutations([one for functions in files.values() for one in functions]))
    names = draw(st.lists(st.sampled_from(("a.py", "d.py", "e/f.py")), min_size=1, unique=True))
    result: dict[str, tuple[Function, ...]] = dict.fromkeys(names, ())
    for name, body in everything:
        more = draw(st.lists(st.tuples(st.integers(0, len(body)), st.sampled_from(HARMLESS)), max_size=2))
        statements = list(body)
        for place, statement in more:
            statements.insert(place, statement)
        target = draw(st.sampled_from(names))
        result[target] = (*result[target], (draw(st.sampled_from((name, "g"))), tuple(statements)))
    return result


@RELAXED
@given(st.data())
def test_what_is_moved_stays_known_and_what_is_added_is_new(fake_rules: None, data: st.DataObject) -> None:
    files = data.draw(projects)
    before = {name: text_of(functions) for name, functions in files.items()}
    after = data.draw(moved(files))
    same = sifted(before, {name: text_of(functions) for name, functions in after.items()})
    assert (same.new, same.gone) == ((), ())

    name = data.draw(st.sampled_from(sorted(after)))
    more = data.draw(functions)
    grown = {**after, name: (*after[name], more)}
    result = sifted(before, {name: text_of(functions) for name, functions in grown.items()})
    assert len(result.new) == len(found_in({"x.py": text_of((more,))}))
    assert result.gone == ()


@RELAXED
@given(projects, projects)
def test_each_entry_is_one_finding_whatever_happens(fake_rules: None, before: Files, after: Files) -> None:
    texts = [{name: text_of(functions) for name, functions in files.items()} for files in (before, after)]
    old, now = map(found_in, texts)
    result = sifted(*texts)
    assert len(result.new) + len(result.known) == len(now)
    assert len(result.gone) + len(result.known) == len(old)
    known = [entry for _, entry in result.known]
    assert len(set(map(id, known))) == len(known)
    assert all(finding.code == entry.rule for finding, entry in result.known)
    assert result == sifted(*texts)


PIECES = (
    "LEAK101", "LEAK102", "{LEAK102: 1}", "'a'",
    "'''a\n# b'''", "f'''{LEAK201}\n'''", "[\n1,\n2]", "(  # c\nLEAK101)", "a \\\n+ b",
)  # fmt: skip
expressions = st.lists(st.sampled_from(PIECES), min_size=1, max_size=3).map(", ".join)
comments = st.sampled_from(
    ("", "  # noqa: E501", "  # why", "  # torchmemlint: ignore[TML102] because", "  # torchmemlint: ignore[TML301]")
)
statements = st.one_of(
    st.builds("x = f({}){}\n".format, expressions, comments),
    st.builds("x = f({}); y = ({}){}\n".format, expressions, expressions, comments),
    st.builds("if f({}):{}\n    y = {}\n".format, expressions, comments, st.sampled_from(("LEAK101", "'''\n'''"))),
    st.builds("def f(a=({})):{}\n    '''LEAK'''\n".format, expressions, comments),
)


@RELAXED
@given(st.lists(statements, min_size=1, max_size=5).map("".join), st.sampled_from(("\n", "\r\n", "\r")))
def test_ignore_comments_silence_everything_and_change_nothing(fake_rules: None, text: str, newline: str) -> None:
    text = f"import torch\n{text}".replace("\n", newline)

    def ignored(text: str) -> FixResult:
        def check(text: str) -> list[Finding]:
            return check_source(text, Path("/p/a.py"), EVERYTHING)

        return ignore_all(text, check(text), check)

    first = ignored(text)
    assert ast.dump(ast.parse(first.text)) == ast.dump(ast.parse(text))
    assert len(first.text.split(newline)) == len(text.split(newline))
    for before, after in zip(text.split(newline), first.text.split(newline), strict=True):
        assert after.startswith(before.rstrip().removesuffix("] because").removesuffix("]"))
    # What is left stands between two semicolons, in rows that all end within strings.
    assert all(";" in text for _ in first.findings)
    again = ignored(first.text)
    assert (again.text, again.applied) == (first.text, ())
