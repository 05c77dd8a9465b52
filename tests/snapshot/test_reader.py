"""What is read from a snapshot's pickle, and what is refused."""

from __future__ import annotations

import contextlib
import os
import pickle
import pickletools
import struct
import time
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapshot.made import CALL, ENGINE, FORMATS, HOME, MADE, MIB, Recorder, frame, native, snapshot, written_by_cpp
from torchmemlint.snapshot.analysis import analyse
from torchmemlint.snapshot.pickled import Reader, Refused
from torchmemlint.snapshot.reader import read_snapshot, snapshot_of
from torchmemlint.snapshot.records import ACTIONS, Snapshot

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 100), 1 << 100)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner) | st.tuples(inner),
    max_leaves=30,
)


def a_run(form: str, steps: int = 3, device: int = 0) -> Recorder:
    """A loop as people write it, with frames that events share."""
    made = Recorder(device=device, form=form)
    forward = [*MADE, CALL, frame(12, "forward", "/home/me/project/model.py"), CALL, frame(30)]
    backward = list(ENGINE)
    kept = [made.allocate(3 * MIB, *MADE, frame(10))]
    for step in range(steps):
        first, second = made.allocate(5 * MIB, *forward), made.allocate(700, *forward)
        third = made.allocate(2 * MIB + step, *backward)
        kept.append(made.allocate(512, *MADE, frame(31)))
        for block in (first, second, third):
            made.free(block, *backward)
    return made


def as_data(read: Snapshot) -> list[Any]:
    """What was read, as torch's dictionaries have it."""

    def frames(number: int) -> list[dict[str, Any]]:
        return [{"filename": one.filename, "line": one.line, "name": one.name} for one in read.stack(number)]

    names = {action: name for name, action in ACTIONS.items()}
    return [
        [
            (
                names[events.actions[at]],
                events.addresses[at],
                events.sizes[at],
                events.times[at],
                frames(events.stacks[at]),
            )
            for at in range(len(events))
        ]
        for events in read.traces.values()
    ]


def expected(whole: dict[str, Any]) -> list[Any]:
    def plain(frames: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{key: one[key] for key in ("filename", "line", "name")} for one in frames]

    return [
        [
            (one["action"], one.get("addr", 0), one["size"], one.get("time_us", 0), plain(one["frames"]))
            for one in events
        ]
        for events in whole["device_traces"]
    ]


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize("form", FORMATS)
def test_every_format(form: str, protocol: int) -> None:
    whole = snapshot(a_run(form), a_run(form, device=1))
    read = snapshot_of(pickle.dumps(whole, protocol))
    assert as_data(read) == expected(whole)
    assert read.devices == [0, 1]
    assert [one.size for one in read.segments] == [one["total_size"] for one in whole["segments"]]
    blocks = [block for segment in read.segments for block in segment.blocks]
    asked = [block for segment in whole["segments"] for block in segment["blocks"]]
    assert [(one.address, one.size, one.requested, one.state) for one in blocks] == [
        (one["address"], one["size"], one["requested_size"], one["state"]) for one in asked
    ]
    assert [[one.name for one in read.stack(block.stack)] for block in blocks] == [
        [one["name"] for one in block["frames"]] for block in asked
    ]


def test_one_written_by_the_cpp_half() -> None:
    whole = snapshot(a_run("2.13"))
    assert as_data(snapshot_of(written_by_cpp(whole))) == expected(whole)


def test_one_that_was_optimized() -> None:
    whole = snapshot(a_run("2.13"))
    assert as_data(snapshot_of(pickletools.optimize(pickle.dumps(whole)))) == expected(whole)


def test_long_traces_come_in_batches() -> None:
    whole = snapshot(a_run("2.13", steps=900))
    assert len(whole["device_traces"][0]) > 6000
    for protocol in (2, 4):
        assert as_data(snapshot_of(pickle.dumps(whole, protocol))) == expected(whole)


def test_more_frames_than_a_batch_has() -> None:
    made = Recorder()
    deep = [frame(line, "again") for line in range(1, 2500)]
    made.allocate(100, *deep)
    made.allocate(100, *deep)
    whole = snapshot(made)
    assert as_data(snapshot_of(pickle.dumps(whole))) == expected(whole)


def test_texts_and_keys_that_are_new() -> None:
    made = Recorder()
    made.allocate(1 << 20, frame(1, "x" * 300), {**frame(2), "fx_node_op": "call_function", "fx_node_name": "relu"})
    for event in made.events:
        event |= {"user_metadata": "y" * 100, "later": {"a": [1, None, 2.5]}, "frames": event["frames"]}
    whole = snapshot(made)
    assert as_data(snapshot_of(pickle.dumps(whole))) == expected(whole)


def test_expandable_segments() -> None:
    made = Recorder()
    made.allocate(30 * MIB, frame(1))
    for event in made.events:
        event["action"] = event["action"].replace("segment_alloc", "segment_map")
    whole = snapshot(made)
    for segment in whole["segments"]:
        segment["is_expandable"] = True
    read = snapshot_of(pickle.dumps(whole))
    assert as_data(read) == expected(whole)
    assert read.segments[0].expandable


def test_the_segments_alone() -> None:
    whole = snapshot(a_run("2.1"))
    read = snapshot_of(pickle.dumps(whole["segments"]))
    assert sum(one.size for one in read.segments) == sum(one["total_size"] for one in whole["segments"])
    assert read.traces == {}


def test_a_file(tmp_path: Path) -> None:
    file = tmp_path / "snapshot.pickle"
    file.write_bytes(pickle.dumps(snapshot(a_run("2.13"))))
    assert read_snapshot(file).frames[0].name
    file.write_bytes(b"")
    with pytest.raises(Refused, match="the file is empty"):
        read_snapshot(file)


def test_torch_reads_what_these_tests_make() -> None:
    viz = pytest.importorskip("torch.cuda._memory_viz")
    for form in FORMATS:
        whole = snapshot(a_run(form), a_run(form, device=1))
        assert "total_reserved" in viz.segsum(whole)
        assert "Device 1" in viz.trace(whole)


@given(PLAIN)
@settings(max_examples=300, deadline=None)
def test_plain_data_is_read_as_python_reads_it(value: Any) -> None:
    def thawed(one: Any) -> Any:
        return {key: thawed(each) for key, each in one.items()} if hasattr(one, "items") else one

    for protocol in (3, 4, 5):  # earlier ones ask for a function for bytes
        assert thawed(Reader(pickle.dumps(value, protocol)).load()) == value


# --- what is refused


class Harmful:
    def __init__(self, call: Any, *arguments: Any) -> None:
        self.reduced = call, arguments

    def __reduce__(self) -> Any:
        return self.reduced


class Plain:
    pass


def cyclic(kind: type) -> Any:
    made: Any = kind()
    if kind is list:
        made.append(made)
    else:
        made["segments"] = made
    return made


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize(
    "value",
    [
        Harmful(os.system, "touch owned"),
        {"segments": [Harmful(eval, "1")], "device_traces": []},
        Plain(),
        os.system,
        OrderedDict(segments=[]),
    ],
    ids=["os.system", "eval in a segment", "an object", "a function", "OrderedDict"],
)
def test_code_is_refused(value: Any, protocol: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Refused, match=r"not plain data: it (names|calls) a function.*could run code.*\(byte "):
        snapshot_of(pickle.dumps(value, protocol))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("protocol", [0, 1])
def test_old_protocols_are_refused(protocol: int) -> None:
    with pytest.raises(Refused, match="protocol 2 or later"):
        snapshot_of(pickle.dumps(snapshot(a_run("2.1")), protocol))


@pytest.mark.parametrize("kind", [list, dict])
@pytest.mark.parametrize("protocol", [2, 4])
def test_cycles_are_refused(kind: type, protocol: int) -> None:
    with pytest.raises(Refused, match="contains itself"):
        snapshot_of(pickle.dumps(cyclic(kind), protocol))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x80\x04\x8d" + struct.pack("<Q", 1 << 62), "cut off"),  # a text of 4 EiB
        (b"\x80\x04\x8e" + struct.pack("<Q", 1 << 40), "cut off"),
        (b"\x80\x04B" + struct.pack("<I", 0xFFFFFFFF), "cut off"),
        (b"\x80\x05\x96" + struct.pack("<Q", 1 << 40), "holds a buffer"),
        (b"\x80\x04\x95" + struct.pack("<Q", 1 << 62) + b"N.", "cut off"),
        (b"\x80\x04\x8b" + struct.pack("<I", 1 << 20) + b"\x01" * (1 << 20) + b".", "an integer of 1,048,576 bytes"),
        (b"\x80\x02]r" + struct.pack("<I", 0xFFFFFFFF) + b"N.", "holds more or less"),  # a memo of 32 GiB elsewhere
        (b"\x80\x04" + b"(" * 100_000, "nests more than"),
        (b"\x80\x04" + b"]" * 100 + b".", "holds more or less"),
        (b"\x80\x04j\xff\xff\xff\x7f.", "refers to something that it does not hold"),
        (b"\x80\x04}(h\x00K\x01h\x00u.", "refers to something|cut off"),
        (b"\x80\x04}]K\x01s.", "a key of a dictionary"),
        (b"\x80\x04K\x01K\x02a.", "no list"),
        (b"\x80\x04e.", "a mark is missing"),
        (b"\x80\x04.", "holds more or less"),
        (b"\x80\x04a.", "cut off, or no pickle"),
        (b"\x80\x07.", "protocol 7 is unknown"),
        (b"PK\x03\x04 a zip file", "a zip archive"),
        (b"\x1f\x8b\x08", "compressed"),
        (b"hello", "protocol 2 or later"),
        (b"\x80\x04K\x01.", "no snapshot"),
        (b"\x80\x04}.", "it holds no `segments`"),
        (b"\x80\x04\x8f.", "holds a set"),
        (b"\x80\x04\x8c\x01\xff.", "cut off, or no pickle"),
        (b"\x80\x04Qx.", "outside of the file"),
        (b"\x80\x04\x82\x01.", "names a function or class"),
    ],
)
def test_broken_and_hostile_bytes(data: bytes, reason: str) -> None:
    began = time.perf_counter()
    with pytest.raises(Refused, match=reason):
        snapshot_of(data)
    assert time.perf_counter() - began < 5


@pytest.mark.parametrize(
    "change",
    [
        lambda whole: whole.update(segments=3),
        lambda whole: whole["segments"][0].pop("address"),
        lambda whole: whole["segments"][0].update(total_size=-1),
        lambda whole: whole["segments"][0].update(total_size="large"),
        lambda whole: whole["segments"][0]["blocks"][0].update(size=1 << 80),
        lambda whole: whole["device_traces"][0].append(3),
        lambda whole: whole["device_traces"][0][0].update(size=1 << 70),
        lambda whole: whole["device_traces"][0][0].update(size="large"),
        lambda whole: whole["device_traces"][0][0].update(addr=-5),
        lambda whole: whole["device_traces"][0][0].update(frames=[3]),
        lambda whole: whole["device_traces"][0][0].update(frames=7),
        lambda whole: whole["device_traces"].append(whole["device_traces"][0]),
        lambda whole: whole.update(more=[{"action": "alloc", "addr": 1, "size": 1}]),
    ],
)
def test_what_is_no_snapshot(change: Any) -> None:
    whole = snapshot(a_run("2.13"))
    change(whole)
    for protocol in (2, 4):
        with pytest.raises(Refused):
            snapshot_of(pickle.dumps(whole, protocol))


WHOLE = pickle.dumps(snapshot(a_run("2.13")))


@given(st.integers(0, len(WHOLE) - 1))
@settings(max_examples=200, deadline=None)
def test_every_cut_is_noticed(length: int) -> None:
    with pytest.raises(Refused):
        snapshot_of(WHOLE[:length])


@given(st.integers(0, len(WHOLE) - 1), st.integers(0, 255))
@settings(max_examples=400, deadline=None)
def test_a_changed_byte_gives_a_report_or_is_refused(place: int, byte: int) -> None:
    changed = WHOLE[:place] + bytes([byte]) + WHOLE[place + 1 :]
    with contextlib.suppress(Refused):
        analyse(snapshot_of(changed), "changed").to_json()


def test_names_of_native_frames() -> None:
    made = Recorder()
    made.allocate(1, native("at::empty(long)"), frame(3))
    read = snapshot_of(pickle.dumps(snapshot(made)))
    assert [one.python for one in read.frames] == [False, True]
    assert read.frames[1].filename == HOME
