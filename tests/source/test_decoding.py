import codecs
import contextlib
import os
from encodings.aliases import aliases
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchmemlint.findings import Position
from torchmemlint.source.decoding import SourceText, UnreadableFile, decode, lines_of, position_of, read

LATIN = "".join(map(chr, range(1, 256)))


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), st.booleans())
def test_utf8_round_trip(text: str, bom: bool) -> None:
    head = "# utf-8\n\n"  # so that the text cannot declare an encoding
    data = (codecs.BOM_UTF8 if bom else b"") + (head + text).encode()
    source = decode(data)
    assert (source.text, source.bom) == (head + text, bom)
    assert source.encode() == data


@given(st.text(LATIN))
def test_latin1_round_trip(text: str) -> None:
    data = b"# -*- coding: latin-1 -*-\n" + text.encode("latin-1")
    source = decode(data)
    assert source.text.partition("\n")[2] == text
    assert source.encode() == data


@given(st.binary())
def test_any_bytes_round_trip_or_are_refused(data: bytes) -> None:
    try:
        source = decode(data)
    except UnreadableFile:
        return
    assert source.encode() == data


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"x = 1",
        b"x = 1\r\ny = 2\r\n",
        b"x = 1\ry = 2\r",
        b"a\r\nb\nc\r",
        codecs.BOM_UTF8,
        codecs.BOM_UTF8 + b"# coding: utf-8\nx",
        "#!/usr/bin/python\n# vim: set fileencoding=cp1252 :\nx = '€'\n".encode("cp1252"),
        "# coding: shift_jis\nx = '日本'\n".encode("shift_jis"),
        "# -*- coding: future_fstrings -*-\nx = f'日本 {1}'\n".encode(),
        b"# coding: future-annotations\nx: int = 1\n",
    ],
)
def test_files_come_back_as_they_were(data: bytes) -> None:
    assert decode(data).encode() == data


@pytest.mark.parametrize(
    ("text", "newline"),
    [("", "\n"), ("a\n", "\n"), ("a\r\nb\r\nc\n", "\r\n"), ("a\rb\r", "\r"), ("a\nb\nc\r\n", "\n")],
)
def test_newline_style(text: str, newline: str) -> None:
    assert SourceText(text).newline == newline


@pytest.mark.parametrize(
    ("data", "message", "position"),
    [
        (b"x = 1\ny = '\xe9'\n", "byte 0xe9 is not valid UTF-8", Position(2, 6)),
        ("é = '".encode() + b"\xff'", "byte 0xff is not valid UTF-8", Position(1, 6)),
        (b"a\nb\nc\n\xe9", "byte 0xe9", Position(4, 1)),
        (b"# coding: ascii\nx = '\xe9'", "not valid ascii", Position(2, 6)),
        (b"# coding: klingon\n", "unknown encoding: klingon", Position(1, 1)),
        (b"# coding: rot13\nx", "not a text encoding", Position(1, 1)),
        (b"# coding: undefined\n", "undefined encoding", Position(1, 1)),
        (b"# coding: punycode\nx = 1\n", "punycode", Position(1, 1)),
        (b"# coding: base64\nx", "not a text encoding", Position(1, 1)),
        (b"# coding: idna\n# xn--zzzzzzzz.xn--\n", "idna", Position(1, 1)),
        (b"# coding: utf-7\nx = a + b\n", "not valid utf-7", Position(2, 7)),
        (codecs.BOM_UTF8 + b"# coding: latin-1\n", "encoding problem", Position(1, 1)),
        (b"x = 1\n\0\0", "null byte", Position(2, 1)),
    ],
)
def test_what_cannot_be_decoded_is_refused_with_its_place(data: bytes, message: str, position: Position) -> None:
    with pytest.raises(UnreadableFile) as caught:
        decode(data)
    assert message in caught.value.message
    assert caught.value.position == position
    assert "\n" not in caught.value.message


@pytest.mark.parametrize("codec", sorted(set(aliases.values()) | set(aliases)))
def test_any_codec_reads_or_is_refused(codec: str) -> None:
    for rest in (b"x = a + '\\x41' # y\n", b"total += loss" * 20, b"\x80\xff\x00+-"):
        with contextlib.suppress(UnreadableFile):
            decode(f"# coding: {codec}\n".encode() + rest).encode()


def test_character_outside_the_encoding_is_refused() -> None:
    with pytest.raises(UnreadableFile, match="ascii has no character 'é'"):
        decode(b"# coding: ascii\n").encode("é")


def test_reading_says_why_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "dangling.py").symlink_to(tmp_path / "nowhere")
    (tmp_path / "loop.py").symlink_to(tmp_path / "loop.py")
    (tmp_path / "folder.py").mkdir()
    for name, reason in (("dangling", "No such file"), ("loop", "symbolic links"), ("folder", "directory")):
        with pytest.raises(UnreadableFile, match=reason):
            read(tmp_path / f"{name}.py")

    def denied(*_: object, **__: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", denied)
    with pytest.raises(UnreadableFile, match="Cannot be read: Permission denied"):
        read(tmp_path / "x.py")


def test_lines_are_split_where_python_splits_them() -> None:
    assert lines_of("a\fb\nc\u2028d\r\ne\rf") == ["a\fb", "c\u2028d", "e", "f"]
    assert lines_of("a\n\n") == ["a", ""]
    assert lines_of("") == []


def test_position_of() -> None:
    text = "ab\r\ncd\re\n"
    assert [position_of(text, text.index(c)) for c in "bce"] == [Position(1, 2), Position(2, 1), Position(3, 1)]
