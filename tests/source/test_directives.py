import tokenize

import pytest

from torchmemlint.findings import Position, Span
from torchmemlint.source.directives import Scope, find_directives

EVERY_ROW = frozenset(range(1, 50))


def said(text: str) -> list[tuple[Scope, list[str] | None]]:
    found = find_directives(text, EVERY_ROW)
    return [(one.scope, None if one.codes is None else [code.text for code in one.codes]) for one in found]


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("# torchmemlint: ignore", (Scope.LINE, None)),
        ("#torchmemlint:ignore", (Scope.LINE, None)),
        ("# torchmemlint: ignore[TML101]", (Scope.LINE, ["TML101"])),
        (
            "# torchmemlint: ignore[TML101, TML2,graph-collection] kept for plots",
            (Scope.LINE, ["TML101", "TML2", "graph-collection"]),
        ),
        ("# torchmemlint: ignore because of plots", (Scope.LINE, None)),
        ("# torchmemlint: ignore[]", (Scope.LINE, [])),
        ("# torchmemlint: ignore[TML101", (Scope.LINE, ["TML101"])),
        ("# torchmemlint: ignore-file", (Scope.FILE, None)),
        ("# torchmemlint: ignore-file[TML1] generated", (Scope.FILE, ["TML1"])),
        ("# noqa", (Scope.NOQA, None)),
        ("# NOQA", (Scope.NOQA, None)),
        ("# noqa: TML101", (Scope.NOQA, ["TML101"])),
        ("# noqa:TML101,E501", (Scope.NOQA, ["TML101", "E501"])),
        ("# noqa : E501 TML101 why", (Scope.NOQA, ["E501", "TML101"])),
        ("# torchmemlint: ingore[TML101]", (Scope.UNKNOWN, ["TML101"])),
        ("# torchmemlint: disable", (Scope.UNKNOWN, None)),
    ],
)
def test_comments(comment: str, expected: tuple[Scope, list[str] | None]) -> None:
    assert said(f"x = 1  {comment}\n") == [expected]
    assert said(f"{comment}\nx = 1\n") == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x = '# torchmemlint: ignore'\n",
        'x = """\n# torchmemlint: ignore-file\n# noqa\n"""\n',
        "x = 'a'  # see torchmemlint: ignore\n",
        "x = 1  # torchmemlint: finds leaks\n",
        "x = 1  # noqa: because\n",
        "x = 1  # noqabene\n",
        "x = 1  # noqa-like\n",
        "x = 1  # flake8: noqa\n",
        "x = 1  # noqa: E501\n",
        "x = f'{a}  # torchmemlint: ignore'\n",
    ],
)
def test_silence(text: str) -> None:
    assert said(text) == []


def test_several_on_one_line_each_with_its_place() -> None:
    line = "x = 1  # type: ignore  # noqa: F401, TML2  # torchmemlint: ignore[TML101] yes\n"
    first, second = find_directives(line, EVERY_ROW)
    assert (first.scope, second.scope) == (Scope.NOQA, Scope.LINE)
    assert first.codes is not None
    span = first.codes[1].span
    assert line[span.start.column - 1 : span.end.column - 1] == "TML2"
    assert line[first.span.start.column - 1 : second.span.start.column - 1] == "# noqa: F401, TML2  "
    assert second.span.end == Position(1, len(line))


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_rows_with_any_newlines(newline: str) -> None:
    text = newline.join(["x = 1", "\fy = 2", "é = 3  # torchmemlint: ignore", ""])
    (found,) = find_directives(text, frozenset())
    assert found.span == Span(Position(3, 8), Position(3, 30))


def test_broken_file_gives_what_can_be_read() -> None:
    assert said("x = 1  # torchmemlint: ignore\ny = (((\n  z\n") == [(Scope.LINE, None)]


def test_nothing_is_tokenized_unless_it_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object) -> None:
        raise AssertionError("tokenized")

    monkeypatch.setattr(tokenize, "generate_tokens", forbidden)
    assert find_directives("import torch\nx = 1  # noqa: F401\ny = 2  # noqa\nz = 'TML101'\n", {1}) == ()
    with pytest.raises(AssertionError, match="tokenized"):
        find_directives("y = 2  # noqa\n", {1})
