"""Markdown, read by a parser of Markdown: what is text stays text, what is code stays code."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from torchmemlint.report.markdown import code, inline
from torchmemlint.report.places import one_line

from .readers import table_cells
from .samples import accumulation, evaluation, loader, render, report

PARSER = MarkdownIt("commonmark", {"html": True}).enable("table")


def cell(text: str) -> str:
    """The HTML that a cell with this text becomes."""
    html = PARSER.render(f"| a | b |\n|---|---|\n| {text} | last |\n")
    assert html.count("<td>") == 2, html
    assert "<td>last</td>" in html
    return html.partition("<td>")[2].partition("</td>")[0]


@pytest.mark.parametrize(
    ("message", "html"),
    [
        ("`loss` is added to `total`", "<code>loss</code> is added to <code>total</code>"),
        ("a | b", "a | b"),
        ("`a | b`", "<code>a | b</code>"),
        ("**not bold**, _not_ ~~not~~ [not](a) link", "**not bold**, _not_ ~~not~~ [not](a) link"),
        ("<script>alert(1)</script> &amp;", "&lt;script&gt;alert(1)&lt;/script&gt; &amp;amp;"),
        ("one ` backtick and <b>", "one ` backtick and &lt;b&gt;"),
        ("`__init__` of `a_b*c`", "<code>__init__</code> of <code>a_b*c</code>"),
        ("two\nlines", "two lines"),
        ("`x[i](y)`", "<code>x[i](y)</code>"),
        (r"a \ b `c\d`", r"a \ b <code>c\d</code>"),
        ("`` ``", "`` ``"),
        ("@user", "@<!-- -->user"),
    ],
)
def test_a_message(message: str, html: str) -> None:
    assert cell(inline(message)) == html


@pytest.mark.parametrize("text", ["a`b", "``", "`a", "a|b", "|`|", "<b>", "a b", "a\\b"])
def test_code(text: str) -> None:
    html = cell(code(text))
    shown = html.removeprefix("<code>").removesuffix("</code>")
    assert shown == text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def test_all_of_it() -> None:
    text = render(report(accumulation(), evaluation(), loader()), "markdown")
    html = PARSER.render(text)
    assert html.count("<table>") == 2
    assert '<a href="https://torchmemlint.readthedocs.io/rules/TML101/">TML101</a>' in html
    assert (
        html.index("<details><summary>Advice: 1</summary>") < html.index("batches are made") < html.index("</details>")
    )
    assert table_cells(text)[0] == [
        "src/train.py:9:9",
        "TML101 graph-accumulation",
        "error",
        accumulation().message.replace("`", "") + " (see src/meter.py:3)",
    ]


def test_nothing_found() -> None:
    assert render(report(), "markdown") == "## torchmemlint\n\nAll checks passed!  \n"


def test_only_advice() -> None:
    html = PARSER.render(render(report(replace(loader(), message="`a | b` | c")), "markdown"))
    assert html.count("<table>") == 1
    assert "<td><code>a | b</code> | c</td>" in html


def bare(text: str) -> str:
    """What is left of a text for comparing: no backticks, which may have become code, and no blanks."""
    return "".join(text.replace("`", "").split())


@settings(deadline=None, max_examples=400)
@given(st.text(alphabet="a1`|\\*_<>[]()&;~#!@ \n$-+:/.'\"", max_size=24))
def test_a_cell_says_what_the_message_says(text: str) -> None:
    html = cell(inline(text))
    shown = unescape(re.sub(r"</?code>|<!-- -->", "", html))
    assert bare(shown) == bare(one_line(text))
    assert not re.search(r"<(?!/?code>|!-- -->)", html)


@settings(deadline=None, max_examples=400)
@given(st.text(alphabet="a`|\\<& *_[", min_size=1, max_size=12).filter(str.strip))
def test_code_says_what_it_is_made_of(text: str) -> None:
    html = cell(code(text))
    assert html.startswith("<code>")
    assert html.endswith("</code>")
    shown = unescape(html.removeprefix("<code>").removesuffix("</code>"))
    assert shown.split() == text.split()
