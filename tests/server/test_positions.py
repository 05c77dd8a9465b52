"""Places in a text, in the units of each encoding, held against Python's own codecs."""

from __future__ import annotations

import pytest

pytest.importorskip("pygls")

from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types as lsp

from torchmemlint.findings import Position, Span
from torchmemlint.server.documents import Document, changed
from torchmemlint.server.edits import text_edits
from torchmemlint.server.positions import Places

CODECS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}
texts = st.text(st.sampled_from("ab \té€😀\x0c\u2028\n\r#") | st.characters(exclude_categories=["Cs"]), max_size=60)
encodings = st.sampled_from(sorted(CODECS))


def units(text: str, encoding: str) -> int:
    codec, width = CODECS[encoding]
    return len(text.encode(codec)) // width


def by_hand(text: str, offset: int, encoding: str) -> lsp.Position:
    """The place of an offset, worked out as the protocol words it."""
    before = text[:offset]
    if before.endswith("\r") and text[offset : offset + 1] == "\n":
        before = before[:-1]  # within a line end
    rows = before.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lsp.Position(len(rows) - 1, units(rows[-1], encoding))


@given(texts, st.integers(0, 60), encodings)
def test_an_offset_is_found_where_the_protocol_says(text: str, offset: int, encoding: str) -> None:
    offset = min(offset, len(text))
    if text[offset - 1 : offset + 1] == "\r\n" and offset:
        offset += 1
    place = by_hand(text, offset, encoding)
    places = Places(text, encoding)
    assert places.offset(place) == offset
    assert places.position(offset) == place


@given(texts, st.integers(0, 12), st.integers(0, 90), encodings)
def test_places_outside_of_the_text_are_taken_for_the_nearest_inside(
    text: str, line: int, character: int, encoding: str
) -> None:
    offset = Places(text, encoding).offset(lsp.Position(line, character))
    assert 0 <= offset <= len(text)
    found = Places(text, encoding).position(offset)
    assert found.line <= line or not text


@given(texts, texts, encodings)
def test_edits_lead_from_one_text_to_the_other(before: str, after: str, encoding: str) -> None:
    document = Document("file:///a.py", before, 1)
    for edit in reversed(text_edits(before, after, encoding)):  # of a list of edits all mean the text as it was
        change = lsp.TextDocumentContentChangePartial(edit.range, edit.new_text)
        document = changed(document, [change], encoding)
    assert document.text == after


def test_edits_are_small() -> None:
    (edit,) = text_edits("a = 1\nb = 2\nc = 3\n", "a = 1\nb = 22\nc = 3\n", "utf-16")
    assert (edit.new_text, edit.range) == ("2", lsp.Range(lsp.Position(1, 5), lsp.Position(1, 5)))


def test_changes_are_made_one_after_the_other() -> None:
    document = Document("file:///a.py", "abc\n", 1)
    start = lsp.Range(lsp.Position(0, 0), lsp.Position(0, 1))
    changes = [lsp.TextDocumentContentChangePartial(start, "x"), lsp.TextDocumentContentChangePartial(start, "yz")]
    assert changed(document, changes, "utf-16").text == "yzbc\n"
    whole = lsp.TextDocumentContentChangeWholeDocument("new")
    assert changed(document, [*changes, whole], "utf-16").text == "new"


def test_a_span_past_the_end_is_cut_off() -> None:
    places = Places("ab\ncd", "utf-16")
    found = places.range(Span(Position(2, 1), Position(9, 9)))
    assert found == lsp.Range(lsp.Position(1, 0), lsp.Position(1, 2))


def test_a_byte_order_mark_is_a_character_to_the_protocol_and_none_to_us() -> None:
    places = Places("\ufeffab", "utf-16")
    assert places.range(Span(Position(1, 1), Position(1, 3))) == lsp.Range(lsp.Position(0, 1), lsp.Position(0, 3))
    assert places.span(lsp.Range(lsp.Position(0, 1), lsp.Position(0, 3))) == Span(Position(1, 1), Position(1, 3))
