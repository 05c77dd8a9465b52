"""The page: what is in it, and how a real browser shows it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

pytest.importorskip("jinja2")
from click.testing import CliRunner

from torchmemlint.cli.main import cli
from torchmemlint.doubts import Doubt
from torchmemlint.engine.run import RunReport
from torchmemlint.findings import Evidence, Finding, Severity
from torchmemlint.measured import Measured, Verdict

from .browser import CHROMIUM, Tab, different_rows, tab
from .consumers import MODULES, needs_packages, node
from .samples import ROOT, accumulation, evaluation, loader, render, report, span

EMPTY = {"meta", "br", "input", "col", "rect"}
HOSTILE = (
    "<script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 2'>",
    "`</code><script>window.hacked = 3</script>`",
    '" onmouseover="window.hacked = 4" autofocus onfocus="window.hacked = 5',
    "</pre></style></title><svg onload='window.hacked = 6'>",
    "{{ 7 * 7 }} {% raw %} javascript:window.hacked=8 <a href='javascript:window.hacked=9'>x</a>",
    "<!-- --><base href='http://example.com/'><link rel=stylesheet href=http://example.com/x.css>",
)
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")


def told(**figures: float) -> Measured:
    return Measured(Verdict.CONFIRMED, "cpu", "", "2.13.0", "2026-11-21", "train.py", **figures)  # type: ignore[arg-type]


def many() -> list[Finding]:
    """Thirty findings in three folders, some of them measured."""
    found = []
    for number in range(30):
        kind = (accumulation(), evaluation(), loader())[number % 3]
        file = kind.filename if number < 10 else ROOT / f"lib/deep/{'very-' * (number // 3)}long-name.py"
        figures = (
            told(per_step=1e6 * number) if number % 5 == 0 else told(peak=2048 * number) if number % 7 == 0 else None
        )
        doubts = (Doubt.GIVEN, Doubt.MODE)[: number % 3]
        found.append(replace(kind, filename=file, measured=figures, doubts=doubts))
    return found


class Checked(HTMLParser):
    """Notes what is opened and closed, and every address."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[tuple[str, str]] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        names = ("src", "href", "action", "srcset", "data", "formaction")
        self.addresses += [(tag, value or "") for name, value in attributes if name in names]
        assert not any(name.startswith("on") or name == "style" for name, _ in attributes)
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in EMPTY:
            assert self.open.pop() == tag


def checked(text: str) -> Checked:
    parser = Checked()
    parser.feed(text)
    assert not parser.open
    return parser


@pytest.fixture(params=["many", "hostile", "nothing"])
def page(request: pytest.FixtureRequest) -> str:
    found = {"many": report(*many()), "hostile": hostile(), "nothing": report()}[request.param]
    return render(found, "html")


def hostile() -> RunReport:
    """What could become markup or a script, wherever text can come from."""
    findings = []
    for number, text in enumerate(HOSTILE, 1):
        chain = (Evidence(text, span(number, 1, number, 5)),)
        fix = replace(accumulation().fix, message=text)  # type: ignore[type-var]
        told_of = replace(told(peak=1), program=text, card=text)
        file = ROOT / f"{text}.py"
        finding = replace(
            accumulation(), message=text, why=text, evidence=chain, fix=fix, filename=file, measured=told_of
        )
        findings.append(replace(finding, name=text, span=span(number, 1, number, 9)))
    return replace(report(*findings), sources=lambda path: list(HOSTILE), notices=HOSTILE, errors=HOSTILE)


def test_it_needs_nothing_from_elsewhere(page: str) -> None:
    parser = checked(page)
    assert page.isascii()
    assert {address for tag, address in parser.addresses if tag != "a"} == set()
    links = {address for tag, address in parser.addresses if tag == "a"}
    assert all(re.fullmatch(r"#findings|https://torchmemlint\.readthedocs\.io/rules/TML\d+/", link) for link in links)
    assert (parser.tags.count("script"), parser.tags.count("style")) == (1, 1)


def test_it_lets_nothing_but_its_own_run(page: str) -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    for tag in ("script", "style"):
        (text,) = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{tag}-src &#39;sha256-{digest}&#39;" in policy[1]
    assert policy[1].startswith("default-src &#39;none&#39;;")


PARSE = """
import { text } from 'node:stream/consumers';
import { parse } from 'parse5';
const found = [];
parse(await text(process.stdin), { onParseError: (error) => found.push(`${error.code} in ${error.startLine}`) });
console.log(JSON.stringify(found));
"""


@needs_packages
def test_it_is_valid_to_a_parser_that_follows_the_standard(page: str) -> None:
    assert json.loads(node(PARSE, text=page)) == []


def test_the_charts_count_and_measure() -> None:
    text = render(report(*many()), "html")
    captions = re.findall("<caption>(.*?)</caption>", text)
    assert captions == [
        "Findings by rule",
        "Findings by folder",
        "Measured cost, per step",
        "Measured cost, at the peak",
    ]
    assert re.findall("<caption>(.*?)</caption>", render(report(loader()), "html")) == captions[:2]
    assert "<caption>" not in render(report(), "html")
    assert text.count('data-field="rule"') == 3
    folders = re.findall('data-field="folder" data-value="(.*?)"', text)
    assert folders == ["lib/deep", "src"]


def test_a_long_chart_ends_with_what_is_left() -> None:
    findings = [replace(loader(), filename=ROOT / f"{number:02}/a.py") for number in range(40)]
    text = render(report(*findings), "html")
    assert text.count('data-field="folder"') == 15
    assert "25 more" in text


def test_a_finding_has_its_code_evidence_and_fix() -> None:
    text = render(report(replace(accumulation(), measured=told(per_step=1e6))), "html")
    assert '<span class="gutter">    9 </span>        <mark class="error">total += loss</mark>\n' in text
    assert "<code>meter</code> keeps its argument" in text
    assert '<span class="row">src/meter.py:3</span>' in text
    assert "<b>Fix</b> (safe): detach <code>loss</code>" in text
    assert "<del>-         total += loss</del><ins>+         total += loss.detach()</ins>" in text
    assert "<b>Measured</b>: +976.6 KiB per step" in text
    assert "<details open>" in text
    assert "<details open>" not in render(report(loader()), "html")
    assert "<b>Help</b>: pass <code>num_workers=</code>" in render(report(loader()), "html")


def test_very_long_rows_are_cut_around_what_is_marked() -> None:
    row = "a" * 5000 + "LEAK" + "b" * 5000
    finding = replace(loader(), span=span(1, 5001, 1, 5005))
    text = render(replace(report(finding), sources=lambda path: [row]), "html")
    assert '<mark class="advice">LEAK</mark>' in text
    assert len(text) < len(render(report(loader()), "html")) + 2000


def test_without_jinja_it_is_said_before_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "jinja2" else find(name, *more)
    )
    result = CliRunner().invoke(cli, ["--isolated", "--output-format", f"html:{tmp_path / 'x.html'}", str(tmp_path)])
    assert result.exit_code == 2
    assert "the format `html` needs jinja2: pip install 'torchmemlint[html]'." in result.output
    assert list(tmp_path.iterdir()) == []


# --- in a browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with tab(tmp_path_factory.mktemp("profile")) as one:
        yield one


@pytest.fixture
def address(page: str, tmp_path: Path) -> str:
    (tmp_path / "page.html").write_text(page)
    return (tmp_path / "page.html").as_uri()


def complaints(browser: Tab) -> list[object]:
    """Errors, dialogs, and what was asked of the network."""
    bad = {"Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Page.javascriptDialogOpening"}
    said: list[object] = [event for event in browser.events if event[0] in bad]
    asked = [event["request"]["url"] for method, event in browser.events if method == "Network.requestWillBeSent"]
    return said + [url for url in asked if not url.startswith(("file:", "about:"))]


@needs_browser
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [360, 1280])
def test_it_is_shown_and_nothing_sticks_out(browser: Tab, address: str, page: str, width: int, dark: bool) -> None:
    browser.go(address, width=width, dark=dark)
    assert complaints(browser) == []
    assert browser.ask("document.documentElement.scrollWidth") <= width
    out = "[...document.querySelectorAll('main *')].filter(one => !one.closest('pre, svg, .unseen')"
    assert browser.ask(f"{out} && one.getBoundingClientRect().right > innerWidth + 1).map(one => one.outerHTML)") == []
    if "<article" in page:
        assert different_rows(browser.picture()) > 150  # an empty page has one, an unstyled error message some dozens
    light = browser.ask("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert light is not dark


@needs_browser
def test_no_text_becomes_a_script(browser: Tab, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(render(hostile(), "html"))
    browser.go((tmp_path / "page.html").as_uri())
    browser.ask("document.querySelectorAll('*').forEach(one => one.dispatchEvent(new MouseEvent('mouseover')))")
    browser.ask("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert browser.ask("typeof window.hacked") == "undefined"
    counts = "['script', 'style', 'img', 'link', 'base', 'iframe', 'a[href^=javascript]'].map(tag => "
    assert browser.ask(f"{counts} document.querySelectorAll(tag).length)") == [1, 1, 0, 0, 0, 0, 0]
    assert browser.ask("document.querySelectorAll('article').length") == len(HOSTILE)
    for text in HOSTILE:
        shown = text.replace("`", "")
        assert browser.ask(f"document.body.innerText.includes({json.dumps(shown)})"), shown
    assert complaints(browser) == []


@needs_browser
def test_what_would_run_is_stopped_should_it_ever_get_in(browser: Tab, tmp_path: Path) -> None:
    """The policy alone would do: a page into which a script was put does not run it."""
    text = render(report(loader()), "html")
    evil = "<script>window.hacked = 1</script><p style='color: red' onclick='window.hacked = 2' id=p>x</p></main>"
    (tmp_path / "page.html").write_text(text.replace("</main>", evil))
    browser.go((tmp_path / "page.html").as_uri())
    browser.ask("document.getElementById('p').click()")
    assert browser.ask("typeof window.hacked") == "undefined"
    assert len(complaints(browser)) >= 2


SHOWN = "[...document.querySelectorAll('article')].filter(one => one.checkVisibility()).length"
STATUS = "document.querySelector('output').value"


def change(browser: Tab, field: str, value: str) -> None:
    """As a person does it: the field gets a value, and says so."""
    browser.ask(
        f"(() => {{ const field = document.forms[0].elements[{field!r}]; field.value = {value!r};"
        " field.dispatchEvent(new Event('input', { bubbles: true })); })()"
    )


@needs_browser
def test_filters(browser: Tab, tmp_path: Path) -> None:
    findings = many()
    (tmp_path / "page.html").write_text(render(report(*findings), "html"))
    address = (tmp_path / "page.html").as_uri()
    browser.go(address)
    assert browser.ask(SHOWN) == 30
    assert browser.ask(STATUS) == "30 of 30 shown"
    change(browser, "rule", "TML201")
    assert (browser.ask(SHOWN), browser.ask(STATUS)) == (10, "10 of 30 shown")
    change(browser, "folder", "src")
    expected = sum(one.code == "TML201" and one.filename.parent.name == "src" for one in findings)
    assert browser.ask(SHOWN) == expected
    assert browser.ask("location.hash") == "#rule=TML201&folder=src"
    browser.ask("document.querySelector('button[type=reset]').click()")
    assert (browser.ask(SHOWN), browser.ask("location.hash")) == (30, "")
    change(browser, "text", "BATCHES training")
    assert browser.ask(SHOWN) == sum(one.code == "TML401" for one in findings)
    change(browser, "text", "nowhere to be found")
    assert browser.ask(SHOWN) == 0
    assert browser.ask("document.getElementById('nothing').checkVisibility()")
    assert browser.ask("[...document.querySelectorAll('section.file')].some(one => one.checkVisibility())") is False
    browser.ask("document.querySelector('button[type=reset]').click()")
    browser.ask("document.querySelector('input[name=severity][value=advice]').click()")
    assert browser.ask(SHOWN) == sum(one.severity is not Severity.ADVICE for one in findings)
    browser.ask("document.querySelector('input[name=fixable]').click()")
    assert browser.ask(SHOWN) == sum(one.code == "TML101" for one in findings)
    browser.ask("document.querySelector('button[type=reset]').click()")
    browser.ask("document.querySelector('button[data-field=rule][data-value=TML401]').click()")
    assert browser.ask(SHOWN) == sum(one.code == "TML401" for one in findings)
    assert complaints(browser) == []


@needs_browser
def test_a_link_holds_the_filters(browser: Tab, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(render(report(*many()), "html"))
    address = (tmp_path / "page.html").as_uri()
    browser.go(f"{address}#severity=error,warning&folder=lib%2Fdeep")
    assert browser.ask(SHOWN) == sum(one.code != "TML401" and "deep" in str(one.filename) for one in many())
    browser.go(f"{address}#rule=TML999&severity=nonsense")
    assert browser.ask("document.forms[0].elements.rule.value") == ""
    assert complaints(browser) == []


@needs_browser
def test_without_scripts_all_is_there(browser: Tab, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(render(report(*many()), "html"))
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.go((tmp_path / "page.html").as_uri())
        assert browser.ask(SHOWN) == 30
        assert browser.ask("document.getElementById('filters').checkVisibility()") is False
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)


@needs_browser
@needs_packages
@pytest.mark.parametrize("dark", [False, True])
def test_it_is_accessible_to_axe(browser: Tab, address: str, dark: bool) -> None:
    browser.go(address, dark=dark)
    browser.ask((MODULES / "axe-core" / "axe.min.js").read_text(encoding="utf-8") + "; 0")
    run = "axe.run().then(found => found.violations.map(one => [one.id, one.nodes.map(node => node.html)]))"
    assert browser.ask(run) == []
    browser.ask("document.documentElement.removeAttribute('lang')")
    assert [rule for rule, _ in browser.ask(run)] == ["html-has-lang"]
