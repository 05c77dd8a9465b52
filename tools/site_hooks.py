"""What mkdocs needs to make the site of pages that are written to be read on GitHub, too.

Links that leave `docs/` lead to pages with the file's text, so that they do on the site what they do in the repository;
the schemas are put where their `$id` says that they are.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"\]\((?P<target>\.\./[^)#\s]*)(?P<anchor>#[^)\s]*)?\)")
LANGUAGES = {".el": "elisp", ".mjs": "javascript", ".rs": "rust", ".sublime-settings": "json", ".yml": "yaml"}
NOT_SEARCHED = "---\nsearch:\n  exclude: true\n---\n\n"
SITE = "https://torchmemlint.readthedocs.io/"
CHANGELOG = "CHANGELOG.md"  # a page of its own, in the navigation
EDIT = "https://github.com/torchmemlint/torchmemlint/edit/main/"


def outside(page: str, target: str) -> str | None:
    """The file of the repository, outside of `docs`, that a page's link leads to."""
    path = os.path.normpath(PurePosixPath("docs", page).parent / target)
    if path.startswith(("docs/", "..")) or not (ROOT / path).is_file():
        return None
    return path


def source_page(path: str) -> str:
    """Where the page with a file's text is; its name has no second ending, which servers would take for a file's."""
    return "changelog.md" if path == CHANGELOG else f"source/{path.replace('.', '-')}.md"


def links(page: str, text: str) -> Iterator[str]:
    """The files outside of `docs` that a page leads to."""
    for link in LINK.finditer(text):
        path = outside(page, link["target"])
        if path is not None:
            yield path


def text_page(path: str) -> str:
    """A file's text as a page."""
    text = (ROOT / path).read_text(encoding="utf-8")
    if path == CHANGELOG:
        text = re.sub(r"^## \[Unreleased\]\n+(?=## )", "", text, flags=re.MULTILINE)  # nothing is
        return re.sub(r"^## \[(.*?)\]", r"## \1", text, flags=re.MULTILINE).replace("](docs/", "](")
    if path.endswith(".md"):
        return NOT_SEARCHED + text
    suffix = Path(path).suffix
    return f"{NOT_SEARCHED}# {path}\n\n````{LANGUAGES.get(suffix, suffix[1:] or 'text')}\n{text.rstrip()}\n````\n"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages of files outside of `docs`, and the schemas."""
    from mkdocs.structure.files import File, InclusionLevel

    found = {path for file in files.documentation_pages() for path in links(file.src_uri, file.content_string)}
    for path in sorted(found):
        page = File.generated(config, source_page(path), content=text_page(path))
        if path != CHANGELOG:
            page.inclusion = InclusionLevel.NOT_IN_NAV
        files.append(page)
    for uri, text in schemas().items():
        files.append(File.generated(config, uri, content=text))
    return files


def edited(page: str) -> str | None:
    """The file of the repository in which a page's text is written; None for those that nobody edits."""
    if page == source_page(CHANGELOG):
        return CHANGELOG
    rule = re.fullmatch(r"rules/TML(\d+)\.md", page)
    if rule is not None:
        [path] = (ROOT / "torchmemlint" / "rules").glob(f"*/tml{rule[1]}_*.md")
        return path.relative_to(ROOT).as_posix()
    return f"docs/{page}" if (ROOT / "docs" / page).is_file() and page != "rules/README.md" else None


def on_pre_page(page: Page, config: MkDocsConfig, files: Files) -> Page:
    """Gives a page the link to edit it. With mkdocs's setting for it, pages ask GitHub for the number of stars."""
    path = edited(page.file.src_uri)
    page.edit_url = None if path is None else EDIT + path
    return page


def schemas() -> dict[str, str]:
    """The schemas of the package by the path that their `$id` names."""
    found = {}
    for path in sorted((ROOT / "torchmemlint").rglob("*schema.json")):
        text = path.read_text(encoding="utf-8")
        found[str(json.loads(text)["$id"]).removeprefix(SITE)] = text
    return found


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turns links that leave `docs` to these pages."""
    here = PurePosixPath(page.file.src_uri)

    def turned(link: re.Match[str]) -> str:
        path = outside(here.as_posix(), link["target"])
        if path is None:
            return link[0]
        return f"]({os.path.relpath(source_page(path), here.parent)}{link['anchor'] or ''})"

    return LINK.sub(turned, markdown)
