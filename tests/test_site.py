"""The documentation site: what mkdocs makes of docs/, and that it would notice what is wrong."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from torchmemlint.report.message import DOCUMENTATION, rule_url
from torchmemlint.rules.registry import all_rules

pytest.importorskip("material", reason="the extra `docs` is not installed")

ROOT = Path(__file__).resolve().parent.parent
ADDRESS = "https://torchmemlint.readthedocs.io/"


def mkdocs(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "mkdocs", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = mkdocs("build", "--strict", "--site-dir", folder)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


def page_at(site: Path, url: str) -> str:
    assert url.startswith(ADDRESS)
    return (site / url.removeprefix(ADDRESS) / "index.html").read_text(encoding="utf-8")


def test_the_page_of_each_finding_is_there(site: Path) -> None:
    assert DOCUMENTATION.startswith(ADDRESS)
    for rule in all_rules():
        page = page_at(site, rule_url(rule.code))
        assert f"{rule.name} ({rule.code})" in page
        assert f'<link rel="canonical" href="{rule_url(rule.code)}">' in page


def test_a_page_shows_the_pattern_the_fix_and_what_is_left_alone(site: Path) -> None:
    page = page_at(site, rule_url("TML202"))
    assert '<span class="filename">bad_uncalled.py</span>' in page
    assert 'class="hll"' in page
    assert re.search(r'<span class="gi">\+    with torch\.no_grad\(\):', page)
    assert "good_switch.py" in page
    assert "# expect:" not in page


def test_links_of_the_rules_into_the_documentation_lead_somewhere(site: Path) -> None:
    for page in sorted(site.rglob("index.html")):
        for path in re.findall(rf'href="{re.escape(ADDRESS)}([^"#]*)', page.read_text(encoding="utf-8")):
            assert (site / path).exists(), f"{page}: {path}"


def test_schemas_are_where_they_say_that_they_are(site: Path) -> None:
    schemas = sorted((ROOT / "torchmemlint").rglob("*schema.json"))
    assert len(schemas) >= 5
    for path in schemas:
        identity = json.loads(path.read_text(encoding="utf-8"))["$id"]
        assert identity.startswith(ADDRESS)
        assert (site / identity.removeprefix(ADDRESS)).read_text(encoding="utf-8") == path.read_text(encoding="utf-8")


def test_files_of_the_repository_are_pages(site: Path) -> None:
    assert 'href="../source/editors/zed/settings-json/"' in (site / "editors" / "index.html").read_text()
    assert "torchmemlint" in (site / "source" / "editors" / "zed" / "settings-json" / "index.html").read_text()


def edit_link(site: Path, page: str) -> str:
    text = (site / page / "index.html").read_text(encoding="utf-8")
    found = re.search(r'href="https://github\.com/torchmemlint/torchmemlint/edit/main/([^"]*)"', text)
    return found[1] if found else ""


def test_pages_can_be_edited_where_they_are_written(site: Path) -> None:
    assert edit_link(site, "install") == "docs/install.md"
    assert edit_link(site, "changelog") == "CHANGELOG.md"
    assert edit_link(site, "rules/TML101") == "torchmemlint/rules/graphs/tml101_graph_accumulation.md"
    assert edit_link(site, "rules") == edit_link(site, "source/editors/zed/settings-json") == ""
    for page in site.rglob("index.html"):
        link = edit_link(site, page.parent.relative_to(site).as_posix())
        assert not link or (ROOT / link).is_file(), page


def test_the_changelog_is_a_page(site: Path) -> None:
    page = (site / "changelog" / "index.html").read_text(encoding="utf-8")
    assert "The first release." in page
    assert 'id="010"' in page
    assert 'href="../precision/"' in page


def test_pages_ask_nothing_of_other_servers(site: Path) -> None:
    loaded = re.compile(
        r'<(?:script|img|iframe)[^>]* src="(http[^"]*)"|<link[^>]* rel="stylesheet"[^>]*href="(http[^"]*)"'
    )
    for page in site.rglob("*.html"):
        assert loaded.search(page.read_text(encoding="utf-8")) is None, page
    for picture in site.rglob("*.svg"):
        assert "url(http" not in picture.read_text(encoding="utf-8"), picture


def test_every_word_can_be_searched_for(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    locations = {entry["location"] for entry in index["docs"]}
    for rule in all_rules():
        assert f"rules/{rule.code}/" in locations


@pytest.mark.parametrize(
    ("link", "complaint"),
    [
        ("[x](no-such-page.md)", "'no-such-page.md', but the target is not found"),
        ("[x](configuration.md#no-such-anchor)", "does not contain an anchor '#no-such-anchor'"),
        ("[x](../no/such/file.py)", "'../no/such/file.py', but the target is not found"),
    ],
)
def test_a_link_that_leads_nowhere_fails_the_build(tmp_path: Path, link: str, complaint: str) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "README.md").write_text(f"# A page\n\n{link}\n[fine](configuration.md#options)\n")
    (docs / "configuration.md").write_text("# Configuration\n\n## Options\n\nNone.\n")
    configuration = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    configuration = re.sub(r"^nav:\n.*", "", configuration, flags=re.MULTILINE | re.DOTALL)
    configuration = configuration.replace("docs_dir: docs", f"docs_dir: {docs}")
    configuration = configuration.replace("tools/site_hooks.py", str(ROOT / "tools" / "site_hooks.py"))
    (tmp_path / "mkdocs.yml").write_text(configuration)
    done = mkdocs("build", "--config-file", tmp_path / "mkdocs.yml", "--site-dir", tmp_path / "site")
    assert done.returncode == 1
    assert complaint in done.stderr
    (docs / "README.md").write_text("# A page\n\n[fine](configuration.md#options)\n")
    done = mkdocs("build", "--config-file", tmp_path / "mkdocs.yml", "--site-dir", tmp_path / "site")
    assert done.returncode == 0, done.stderr
