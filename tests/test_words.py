"""The style of pages and of `--help`, and that the style's own rules find what they are for.

`wordy.json` holds the pages whose sentences are longer than they should be, with their
mean. None of them may get worse, and no other page may join them.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType

import click
import pytest

import torchmemlint
from tests.words import MEAN, banned, complaints, helps, mean_length, sentences
from torchmemlint import callbacks, plugins, testing
from torchmemlint.cli.main import cli
from torchmemlint.flow.facts import FileFacts

ROOT = Path(__file__).resolve().parents[1]
WORDY: dict[str, float] = json.loads((ROOT / "tests/wordy.json").read_text())
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    *(ROOT / "docs").glob("*.md"),
    *(ROOT / "torchmemlint/rules").glob("*/*.md"),  # what the pages of rules are made of
]
SLACK = 0.5  # words: a page may change without its mean being looked up


@pytest.mark.parametrize("page", sorted(PAGES), ids=lambda page: page.name)
def test_sentences_are_short(page: Path) -> None:
    name = page.relative_to(ROOT).as_posix()
    most = max(MEAN, WORDY.get(name, 0) + SLACK)
    found = mean_length(page.read_text(encoding="utf-8"))
    assert found <= most, f"{name}: {found:.1f} words per sentence, {most} at most"
    if name in WORDY:
        assert found > MEAN, f"{name} is short enough now: take it out of tests/wordy.json"


@pytest.mark.parametrize("page", sorted((ROOT / "torchmemlint/rules").glob("*/*.md")), ids=lambda page: page.name)
def test_pages_of_rules_use_plain_words(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    why = re.findall(r"^why: (.*)$", text, re.MULTILINE)
    assert len(why) == 1
    assert {one: list(banned(one)) for one in [*why, *sentences(text)] if any(banned(one))} == {}


def _public() -> Iterator[tuple[str, object]]:
    """What the pages of the API and of plugins name, with the properties and methods of its classes."""
    for module in (torchmemlint, plugins):
        for name in module.__all__:
            one = getattr(module, name)
            if not isinstance(one, str) and one is not FileFacts:  # a version; and what plugins ask by functions
                yield f"{module.__name__}.{name}", one
                members = vars(one).items() if isinstance(one, type) else ()
                for member, value in members:
                    if not member.startswith("_") and isinstance(value, property | FunctionType):
                        yield f"{module.__name__}.{name}.{member}", value
    yield from (
        (f"testing.{name}", getattr(testing, name)) for name in ("fixtures_in", "expectations", "check_fixture")
    )
    yield from ((f"callbacks.{one}", getattr(callbacks, one)) for one in ("explained", "lightning_callback"))
    yield "callbacks.trainer_callback", callbacks.trainer_callback


@pytest.mark.parametrize(("name", "one"), list(_public()), ids=lambda one: one if isinstance(one, str) else "")
def test_public_docstrings_are_short_statements(name: str, one: object) -> None:
    text = inspect.getdoc(one) or ""
    first = text.split("\n")[0]
    assert first.endswith(".")
    assert "?" not in first
    assert mean_length(text) <= MEAN, name
    assert {word for sentence in sentences(text) for word in banned(sentence)} == set()


@pytest.mark.parametrize("function", [torchmemlint.check_source, torchmemlint.fix_source, torchmemlint.check_paths])
def test_docstrings_of_the_api_name_each_argument(function: FunctionType) -> None:
    same = inspect.getdoc(torchmemlint.check_source) or ""
    text = (inspect.getdoc(function) or "") + same
    unnamed = {name for name in inspect.signature(function).parameters if f"`{name}`" not in text}
    assert unnamed <= {"source", "paths"}  # the first line says these: the text, the files
    assert "Raises `ConfigError`" in same


def test_pages_that_are_gone_are_not_listed() -> None:
    assert {name for name in WORDY if not (ROOT / name).is_file()} == set()


@pytest.mark.parametrize("page", [page for page in PAGES if "rules" not in page.parts], ids=lambda page: page.name)
def test_pages_use_no_banned_word(page: Path) -> None:
    text = "\n".join(sentences(page.read_text(encoding="utf-8")))
    assert list(banned(text)) == []


HELPS = tuple(helps(cli, "torchmemlint"))


def test_help_is_looked_at() -> None:
    names = {name for name, _ in HELPS}
    assert {"torchmemlint", "torchmemlint check --select", "torchmemlint baseline update"} <= names


@pytest.mark.parametrize("name", sorted({name for name, _ in HELPS}))
def test_help_is_short(name: str) -> None:
    for text in (text for of, text in HELPS if of == name):
        assert mean_length(text) <= MEAN, f"{name}: {mean_length(text):.1f} words per sentence: {text}"
        assert list(banned(text)) == [], f"{name}: {text}"


def test_help_is_that_of_commands_and_options() -> None:
    @click.group(help="Do things.")
    def things() -> None: ...

    @things.command(short_help="Do one.", epilog="That is all.")
    @click.option("-q", "--quiet", is_flag=True, help="Say nothing of it.")
    @click.option("--secret")
    def one(quiet: bool, secret: str) -> None:
        """Do one thing of many."""

    assert list(helps(things, "things")) == [
        ("things", "Do things."),
        ("things one", "Do one thing of many."),
        ("things one", "That is all."),
        ("things one", "Do one."),
        ("things one --quiet", "Say nothing of it."),
    ]


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        ("`total += loss` keeps every iteration's autograd graph", None),
        ("only numbers are read from `model(x)`, but gradients are enabled", None),
        ("`x` keeps the graphs of " + "very " * 20 + "many steps", "has 134 characters, of code 20 at most"),
        ("`" + "x" * 200 + "` is short", None),
        ("Keeps `x`", "does not begin with code, or in lower case"),
        ("keeps a graph", "names no code"),
        ("`x` keeps a graph.", "ends with a full stop"),
        ("`x` comes to 3 GiB", "says `comes to`"),
        ("`x` makes a tensor on the host", "says `host`"),
        ("`host.told(nobody)` keeps a graph", None),
    ],
)
def test_what_a_message_may_not_be(message: str, complaint: str | None) -> None:
    assert list(complaints(message)) == ([complaint] if complaint else [])


def test_words_that_are_not_to_be_used() -> None:
    assert list(banned("it tells of rows, of which nobody is told")) == [
        "says `tells`",
        "says `of which`",
        "says `nobody`",
        "says `told`",
    ]


def test_sentences_of_a_page() -> None:
    page = """# A title that is not a sentence of its own

First sentence of `code` here. `second` begins with code. A [link](https://example.org/a.b) is a word.

| a table | is none at all |

- an item of a list
- another item. With two sentences in it.

```python
no sentence stands here at all
```
<!-- made: written by x -->
this is generated and no prose
<!-- end of made -->
"""
    assert list(sentences(page)) == [
        "First sentence of X here.",
        "X begins with code.",
        "A [link] is a word.",
        "an item of a list",
        "With two sentences in it.",
    ]
