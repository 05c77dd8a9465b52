from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import pytest

from torchmemlint.findings import Applicability, Finding, Severity
from torchmemlint.rules.base import Rule
from torchmemlint.rules.docs import OPTIONAL, SECTIONS, PageError, page, shown, to_markdown
from torchmemlint.rules.registry import all_rules


class Sample(Rule):
    """## What it does
    Finds samples.

    ## Why it costs memory
    Every sample is kept.

    ## Example
    ```python
    ## not a heading
    kept.append(sample)
    ```

    ## Use instead
    ```python
    kept.append(sample.detach())
    ```

    ## Fix safety
    Safe.

    ## When it stays silent
    - Elsewhere.

    ## References
    - PyTorch FAQ
    """

    code = "TML999"
    name = "sample"
    severity = Severity.WARNING
    fix = Applicability.SAFE
    why = "Samples are large."

    def check(self, facts: object) -> Iterator[Finding]:
        """Find nothing."""
        yield from ()


def with_docstring(text: str | None) -> type[Rule]:
    return type("Other", (Sample,), {"__doc__": text})


def test_sections_are_read() -> None:
    found = page(Sample)
    assert found.code == "TML999"
    assert found.what_it_does == "Finds samples."
    assert found.example == "```python\n## not a heading\nkept.append(sample)\n```"
    assert found.references == "- PyTorch FAQ"
    assert page(Sample()) == found


def test_markdown_has_the_metadata_and_all_sections_in_order() -> None:
    text = to_markdown(page(Sample))
    assert text.startswith(
        "# sample (TML999)\n\nSeverity: **warning** · Default: **on** · Fix: **safe (`--fix`)** · Status: stable"
        "\n\n## What it does\n"
    )
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert [line for line in headings if line != "## not a heading"] == [
        f"## {title}" for title in SECTIONS if title not in OPTIONAL
    ]
    assert shown(to_markdown(page(Sample)), color=False) == text


def test_terminal_shows_the_same_words_in_colour() -> None:
    painted = shown(to_markdown(page(Sample)), color=True, width=80)
    assert "\x1b[" in painted
    plain = re.sub(r"\x1b\[[0-9;]*m", "", painted)
    assert all(title in plain for title in SECTIONS if title not in OPTIONAL)
    assert "kept.append(sample.detach())" in plain
    assert max(map(len, plain.splitlines())) <= 80


def test_a_page_may_begin_in_short() -> None:
    text = f"## In short\n- **Fix**: this.\n\n{inspect.cleandoc(Sample.__doc__ or '')}"
    found = page(with_docstring(text))
    assert found.in_short == "- **Fix**: this."
    assert to_markdown(found).index("## In short") < to_markdown(found).index("## What it does")


@pytest.mark.parametrize("title", [title for title in SECTIONS if title not in OPTIONAL])
def test_a_missing_or_empty_section_is_an_error(title: str) -> None:
    assert Sample.__doc__ is not None
    for spoilt in (
        Sample.__doc__.replace(f"## {title}\n", ""),
        re.sub(rf"(## {title}\n).*?(?=    ## [WEUFR](?!x)|\Z)", r"\1", Sample.__doc__, flags=re.DOTALL),
    ):
        with pytest.raises(PageError, match=title):
            page(with_docstring(spoilt))


def test_other_mistakes_are_errors() -> None:
    text = inspect.cleandoc(Sample.__doc__ or "")  # from Python 3.13 on the compiler does this
    for spoilt, message in (
        (None, "no text for"),
        (text + "\n## Referrences\nx", "unknown section `## Referrences`"),
        (text + "\n## Example\nx", "twice"),
        (text + "\n```python\n", "not closed"),
    ):
        with pytest.raises(PageError, match=message):
            page(with_docstring(spoilt))


def test_a_subclass_does_not_borrow_the_page_of_its_base() -> None:
    class Silent(Sample):
        pass

    with pytest.raises(PageError):
        page(Silent)


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)
def test_every_rule_has_its_page(rule: Rule) -> None:
    found = page(rule)
    assert re.fullmatch(r"TML\d{3}", found.code)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", found.name)
    assert rule.why.strip() == rule.why
    assert rule.why
    assert "\n" not in rule.why
