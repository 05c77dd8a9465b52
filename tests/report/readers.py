"""Readers of the output formats, made of other people's parsers or after other people's programs.

Each gives what was found where. What a format cannot carry is None: Pylint's has no columns, nor has GitHub's for what
spans several lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urljoin, urlparse

import junitparser
from markdown_it import MarkdownIt


class Found(NamedTuple):
    path: str  # as read from the root
    row: int
    column: int | None
    code: str


Reader = Callable[[str, Path], list[Found]]
PLACE = re.compile(r"(?P<path>.+):(?P<row>\d+):(?P<column>\d+)\Z", re.DOTALL)


def place(text: str, code: str) -> Found:
    match = PLACE.match(text)
    assert match is not None, text
    return Found(match["path"], int(match["row"]), int(match["column"]), code)


def below(path: str, root: Path) -> str:
    return Path(path).relative_to(root).as_posix() if Path(path).is_relative_to(root) else path


def full(text: str, root: Path) -> list[Found]:
    codes = re.findall(r"^([A-Z]+\d+) (?:\[.\] )?[a-z0-9-]+ \((?:error|warning|advice)\): ", text, re.MULTILINE)
    places = re.findall(r"^ *--> (.*)$", text, re.MULTILINE)
    return [place(one, code) for one, code in zip(places, codes, strict=True)]


def concise(text: str, root: Path) -> list[Found]:
    """As an editor's `errorformat` has it: `%f:%l:%c: %m`."""
    found = (re.match(r"(.+?:\d+:\d+): ([A-Z]+\d+) ", line) for line in text.splitlines())
    return [place(match[1], match[2]) for match in found if match is not None]


def grouped(text: str, root: Path) -> list[Found]:
    found, path = [], ""
    for line in text.splitlines():
        if match := re.match(r"  (\d+):(\d+) +([A-Z]+\d+) ", line):
            found.append(Found(path, int(match[1]), int(match[2]), match[3]))
        elif line.endswith(":"):
            path = line[:-1]
    return found


def _object(one: dict[str, Any], root: Path) -> Found:
    return Found(below(one["filename"], root), one["location"]["row"], one["location"]["column"], one["code"])


def json_list(text: str, root: Path) -> list[Found]:
    return [_object(one, root) for one in json.loads(text)]


def json_report(text: str, root: Path) -> list[Found]:
    return [_object(one, root) for one in json.loads(text)["findings"]]


def json_lines(text: str, root: Path) -> list[Found]:
    assert text == "" or text.endswith("\n")
    return [_object(json.loads(line), root) for line in text.splitlines()]


def sarif(text: str, root: Path) -> list[Found]:
    (run,) = json.loads(text)["runs"]
    found = []
    for result in run["results"]:
        physical = result["locations"][0]["physicalLocation"]
        artifact = physical["artifactLocation"]
        base = run["originalUriBaseIds"][artifact["uriBaseId"]]["uri"] if "uriBaseId" in artifact else ""
        path = unquote(urlparse(urljoin(base, artifact["uri"])).path, errors="surrogateescape")
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        region = physical["region"]
        found.append(Found(below(path, root), region["startLine"], region["startColumn"], result["ruleId"]))
    return found


class Annotation(NamedTuple):
    command: str
    properties: dict[str, str]
    data: str


def annotation(line: str) -> Annotation:
    """A workflow command, read as the runner reads it (actions/runner, `ActionCommand.TryParseV2`)."""
    line = line.lstrip()
    assert line.startswith("::")
    end = line.index("::", 2)
    command, _, properties = line[2:end].partition(" ")
    assert command in ("error", "warning", "notice")
    pairs = dict(one.split("=", 1) for one in properties.strip().split(",") if one)
    escaped = {"%0D": "\r", "%0A": "\n", "%3A": ":", "%2C": ",", "%25": "%"}  # in the runner's order
    data = line[end + 2 :]
    for sign in ("%0D", "%0A", "%25"):
        data = data.replace(sign, escaped[sign])
    for key in pairs:
        for sign, character in escaped.items():
            pairs[key] = pairs[key].replace(sign, character)
    return Annotation(command, pairs, data)


def azure(text: str, root: Path) -> list[Found]:
    found = []
    for line in text.split("\n")[:-1]:
        match = re.match(r"##vso\[task\.logissue ([^\]]*)\](.*)\Z", line)
        assert match is not None, line
        said = dict(one.split("=", 1) for one in match[1].split(";") if one)
        path = said["sourcepath"]
        for sign, character in {"%0D": "\r", "%0A": "\n", "%5D": "]", "%3B": ";", "%AZP25": "%"}.items():
            path = path.replace(sign, character)
        found.append(Found(path, int(said["linenumber"]), int(said["columnnumber"]), said["code"]))
    return found


def github(text: str, root: Path) -> list[Found]:
    found = []
    for line in text.split("\n")[:-1]:
        properties = annotation(line).properties
        column = int(properties["col"]) if "col" in properties else None
        code = properties["title"].partition(" ")[0]
        # The runner refuses columns of several lines, and they have to be positive.
        assert (column is None) == (properties["line"] != properties["endLine"])
        found.append(Found(properties["file"], int(properties["line"]), column, code))
    return found


def gitlab(text: str, root: Path) -> list[Found]:
    """As GitLab reads it: `lines.begin`, or else `positions.begin.line`."""
    found = []
    for one in json.loads(text):
        location = one["location"]
        begin = location["positions"]["begin"]
        assert begin["line"] == location["lines"]["begin"]
        code = one["check_name"].partition(" ")[0]
        found.append(Found(location["path"], location["lines"]["begin"], begin["column"], code))
    return found


def junit(text: str, root: Path) -> list[Found]:
    found = []
    for suite in junitparser.JUnitXml.fromstring(text.encode("ascii")):
        for case in suite:
            if case.is_passed:
                continue
            match = re.fullmatch(r"([A-Z]+\d+) [a-z0-9-]+ \((\d+):(\d+)\)", case.name)
            assert match is not None, case.name
            found.append(Found(suite.name, int(match[2]), int(match[3]), match[1]))
    return found


JENKINS = re.compile(  # analysis-model, `PyLintParser`, but for the code, of which it takes the first letter only
    r"(?P<path>(?:[A-Z]:\\)?[^:]*)(?::(?P<module>.*))?:(?P<line>\d+): "
    r"\[(?P<type>(?P<category>[A-Z])\d*)?(?:\((?P<symbol>.*)\), )?.*?\] (?P<message>.*)"
)


def pylint(text: str, root: Path) -> list[Found]:
    found = []
    for line in text.splitlines():
        match = JENKINS.fullmatch(line)
        assert match is not None, line
        code = re.search(r"\[([A-Z]+\d+)\([a-z0-9-]+\), [^\]]*\] ", line)
        assert code is not None, line
        path = match["path"] if match["module"] is None else f"{match['path']}:{match['module']}"
        found.append(Found(path, int(match["line"]), None, code[1]))
    return found


def rdjson(text: str, root: Path) -> list[Found]:
    found = []
    for one in json.loads(text)["diagnostics"]:
        start = one["location"]["range"]["start"]
        path = one["location"]["path"]
        column = start["column"]
        file = root / path
        if file.exists():  # its columns are bytes
            rows = re.split(rb"\r\n|\r|\n", file.read_bytes())
            column = len(rows[start["line"] - 1][: column - 1].decode("utf-8", "replace")) + 1
        found.append(Found(path, start["line"], column, one["code"]["value"]))
    return found


def table_cells(text: str) -> list[list[str]]:
    """The text of the cells of all rows of all tables, as GitHub's flavour of Markdown has them."""
    rows: list[list[str]] = []
    for token in MarkdownIt("commonmark", {"html": True}).enable("table").parse(text):
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline" and token.level > 1 and rows:
            shown = (one.content for one in token.children or () if one.type in ("text", "code_inline", "softbreak"))
            rows[-1].append("".join(shown))
    return [row for row in rows if row != ["place", "rule", "severity", "message"]]


def markdown(text: str, root: Path) -> list[Found]:
    return [place(cells[0], cells[1].partition(" ")[0]) for cells in table_cells(text)]


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[Found] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        named = dict(attributes)
        if tag == "article":
            self.found.append(place(named["data-place"] or "", named["data-rule"] or ""))


def html(text: str, root: Path) -> list[Found]:
    page = _Page()
    page.feed(text)
    return page.found


READERS: dict[str, Reader] = {
    "full": full,
    "concise": concise,
    "grouped": grouped,
    "json": json_list,
    "json-lines": json_lines,
    "json-report": json_report,
    "sarif": sarif,
    "github": github,
    "azure": azure,
    "gitlab": gitlab,
    "junit": junit,
    "pylint": pylint,
    "rdjson": rdjson,
    "markdown": markdown,
    "html": html,
}
