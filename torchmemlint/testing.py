"""For the tests of plugins: programs that say themselves what is found in them.

    import pytest
    from pathlib import Path
    from torchmemlint.testing import check_fixture, fixtures_in

    @pytest.mark.parametrize("path", fixtures_in(Path(__file__).parent / "fixtures"), ids=lambda path: path.stem)
    def test_fixture(path):
        check_fixture(path, select=["ACM"])

A comment `# expect: ACM101` (or `# expect: ACM101 warning, ACM102`) announces the findings that begin on its line.
`bad_NAME.py` has at least one, `good_NAME.py` none, and `bad_NAME.fixed.py` is what fixing makes of `bad_NAME.py`,
without such comments. Nothing here needs pytest.
"""

from __future__ import annotations

import io
import os
import re
import tokenize
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from torchmemlint.api import check_source, fix_source
from torchmemlint.findings import Finding
from torchmemlint.source.decoding import decode

__all__ = ["Expected", "check_fixture", "expectations", "fixtures_in"]

_COMMENT = re.compile(r"#\s*expect:\s*(?P<findings>.*)")
_ONE = re.compile(r"(?P<code>[A-Z]+[0-9]{3})(?: (?P<severity>error|warning|advice))?")
_IN_TEXT = re.compile(r"[ \t]*#\s*expect:.*")
_FIXED = ".fixed.py"


@dataclass(frozen=True, order=True)
class Expected:
    """A finding that a comment announces; severity "" stands for any."""

    row: int
    code: str
    severity: str = ""

    def __str__(self) -> str:
        return f"line {self.row}: {self.code} {self.severity}".rstrip()


def fixtures_in(folder: str | os.PathLike[str]) -> list[Path]:
    """The programs `bad_*.py` and `good_*.py` of a folder and the folders below it.

    Raises `FileNotFoundError` if there are none, so that a test that runs over them cannot pass without any.
    """
    found = sorted(path for path in Path(folder).rglob("*.py") if path.name.startswith(("bad_", "good_")))
    if not found:
        raise FileNotFoundError(f"{folder}: there is no bad_*.py and no good_*.py in it")
    return [path for path in found if not path.name.endswith(_FIXED)]


def expectations(text: str) -> list[Expected]:
    """The findings that the comments of a program announce, in order. Raises `ValueError` for one that is misspelt."""
    found = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and (comment := _COMMENT.fullmatch(token.string)):
            for part in comment["findings"].split(","):
                one = _ONE.fullmatch(part.strip())
                if one is None:
                    raise ValueError(f"line {token.start[0]}: {part.strip()!r} is no code such as ABC101")
                found.append(Expected(token.start[0], one["code"], one["severity"] or ""))
    return sorted(found)


def check_fixture(
    path: str | os.PathLike[str],
    *,
    select: Iterable[str],
    plugins: Iterable[str | os.PathLike[str]] = (),
    unsafe: bool = False,
) -> None:
    """Check one program against its comments and, if there is one, against its fixed twin.

    `select` names the rules, as for `check_source`. `plugins` brings those that are not installed. `unsafe` applies
    unsafe fixes, too. The program is checked alone: no configuration and no other file counts. Raises
    `AssertionError`, which says what is missing and what is too much.
    """
    path, select, plugins = Path(path), tuple(select), tuple(plugins)
    text = decode(path.read_bytes()).text
    findings = check_source(text, select=select, plugins=plugins)
    announced = expectations(text)
    if bool(announced) is not path.name.startswith("bad_"):
        raise AssertionError(f"{path}: {'good_ files announce no finding' if announced else 'no `# expect: CODE`'}")
    missed, surplus = _compared(announced, findings)
    if missed or surplus:
        lines = [*(f"  missed   {one}" for one in missed), *(f"  surplus  {one}" for one in surplus)]
        raise AssertionError("\n".join((f"{path}: not exactly what is announced", *lines)))
    twin = path.with_name(path.stem + _FIXED)
    if twin.exists():
        _check_fixed(_IN_TEXT.sub("", text), twin, select, plugins, unsafe)


def _compared(announced: list[Expected], findings: list[Finding]) -> tuple[list[Expected], list[Expected]]:
    """What was announced and not found, and what was found and not announced."""
    found = Counter(Expected(one.span.start.row, one.code, one.severity.value) for one in findings)
    missed = []
    for expected in sorted(announced, key=lambda one: not one.severity):
        hit = next(
            (
                one
                for one in sorted(found)
                if (one.row, one.code) == (expected.row, expected.code) and expected.severity in ("", one.severity)
            ),
            None,
        )
        if hit is None:
            missed.append(expected)
        else:
            found -= Counter([hit])
    return missed, sorted(found.elements())


def _check_fixed(
    text: str, twin: Path, select: tuple[str, ...], plugins: tuple[str | os.PathLike[str], ...], unsafe: bool
) -> None:
    import difflib

    fixed = fix_source(text, select=select, plugins=plugins, unsafe=unsafe)
    wanted = decode(twin.read_bytes()).text
    if fixed.text != wanted:
        rows = (wanted.splitlines(), fixed.text.splitlines())
        lines = difflib.unified_diff(*rows, str(twin), "what fixing makes", n=1, lineterm="")
        reasons = [f"taken back: {one.finding.code}: {one.reason}" for one in fixed.rolled_back]
        raise AssertionError("\n".join((f"{twin}: fixing makes something else", *lines, *reasons)))
    if not fixed.applied:
        raise AssertionError(f"{twin}: nothing was fixed")
    if fix_source(fixed.text, select=select, plugins=plugins, unsafe=unsafe).applied:
        raise AssertionError(f"{twin}: fixing it again changes it")
    compile(fixed.text, str(twin), "exec", dont_inherit=True)
