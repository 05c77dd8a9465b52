"""Reads a memory snapshot (`torch.cuda.memory._dump_snapshot`) from its pickle, without trusting it.

Knows what torch has written since release 2.1; keys that are new are left out. Events are put into columns as they are
read, so that a file of a gigabyte takes less memory than it has bytes.
"""

from __future__ import annotations

import contextlib
import mmap
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from torchmemlint.snapshot.checks import NO_STACK, annotation, count, items, plain
from torchmemlint.snapshot.patterns import FLAT, INTEGERS, LAST, MEMOS, REFERENCE, REST, RUNS, value_of
from torchmemlint.snapshot.pickled import NO_PICKLE, OPEN, Buffer, Reader, Refused
from torchmemlint.snapshot.records import ACTIONS, Action, Block, Events, Frame, Segment, Snapshot, Stack

_MOST_SHAPES = 12
_MOST_KEPT = 200_000  # runs of references whose meaning is kept


class _Event:
    """Takes the place of an event, which stands in the columns."""


_EVENT = _Event()


class _Shape(NamedTuple):
    """What events that look alike share. `match` finds the next: its address, size, time, and reference to a stack."""

    match: Callable[[Buffer, int], re.Match[bytes] | None]
    action: int
    memo: tuple[Any, ...]  # what the file may refer to later, but for the stack
    keeps_stack: bool


class _SnapshotReader(Reader):
    def __init__(self, data: Buffer) -> None:
        super().__init__(data)
        self.events = Events()
        self.frames: list[Frame] = []
        self.stacks: list[tuple[int, ...]] = [()]
        self._frame_numbers: dict[Frame, int] = {}
        self._stack_numbers: dict[tuple[int, ...], Stack] = {(): NO_STACK}
        self._runs: dict[bytes, tuple[Any, ...]] = {}
        self._stack_runs: dict[bytes, Stack] = {}
        self._texts: dict[str, str] = {}
        self._likely: list[_Shape] = []
        self._known: dict[bytes, Any] = {}
        self._next: dict[Stack, tuple[bytes, Stack]] = {}
        self._before = NO_STACK
        self._end = 0

    # --- several opcodes at once

    def read_ahead(self) -> bool:
        """Flat dictionaries, as events and frames are; many events at once where these look alike."""
        start = self.at
        self._read_events()
        return self.at > start or self._read_dict()

    def _read_events(self) -> None:
        """Events that look like one which was read before: the most of a file, so that nothing is looked up twice."""
        data, memo, known, runs, likely = self.data, self.memo, self._known, self._runs, self._likely
        events, stacked, following = self.events, self._stack, self._next
        add_action, add_address, add_size = events.actions.append, events.addresses.append, events.sizes.append
        add_stack, add_time = events.stacks.append, events.times.append
        while True:
            for shape in likely:
                found = shape.match(data, self.at)
                if found is not None:
                    break
            else:
                return
            if shape is not likely[0]:
                likely.remove(shape)
                likely.insert(0, shape)
            address, size, time, reference = found.groups()
            end = found.end()
            if reference is None:
                guess = following.get(self._before)
                if guess is not None and data[end : end + len(guess[0])] == guess[0]:
                    stack = self._before = guess[1]
                    end += len(guess[0])
                else:
                    self._end = end
                    ahead = self._stack_ahead()
                    if ahead is None:
                        return
                    stack, end = ahead, self._end
            else:
                stack = (runs.get(reference) or self._run(reference))[0]
                if type(stack) is not Stack:
                    return
            add_action(shape.action)
            add_address(int.from_bytes(address[2:], "little", signed=True) if address[0] == 0x8A else value_of(address))
            add_size(known[size] if size in known else self._keep(size))
            add_stack(stack)
            if time is None:
                add_time(0)
            else:
                add_time(int.from_bytes(time[2:], "little", signed=True) if time[0] == 0x8A else value_of(time))
            memo += shape.memo
            if shape.keeps_stack:
                memo.append(stack)
            stacked.append(_EVENT)
            self.at = end

    def _read_dict(self) -> bool:
        found = FLAT.match(self.data, self.at)
        if found is None:
            return False
        groups = found.groups()
        self._end = found.end()
        stack: Stack | None = None
        if groups[LAST + 3] is not None:
            stack = self._stack_ahead()
            if stack is None:
                return False
        elif groups[LAST + 1] is not None:
            if self.data[self._end : self._end + 1] != b"u":
                return False
            self._end += 1
            stack = NO_STACK
        return self._read_flat(groups, stack, groups[LAST + 4])

    def _stack_ahead(self) -> Stack | None:
        """The call stack that a list of references is, from the first of these to the end of its event."""
        start = self._end
        found = REST.match(self.data, start)
        if found is None:
            return None
        inside = found[1]
        stack = self._stack_runs.get(inside) or self._stack_run(inside)
        self._next[self._before] = found[0], stack
        self._end = found.end()
        self._before = stack
        return stack

    def _keep(self, data: bytes) -> Any:
        value = value_of(data)
        if len(self._known) < _MOST_KEPT:
            self._known[data] = value
        return value

    def _read_flat(self, groups: tuple[Any, ...], stack: Stack | None, reference: bytes | None) -> bool:
        runs = self._runs
        items: list[Any] = []
        places: dict[int, int] = {}  # the group of a value, by its place among the items
        for place, run in enumerate(groups[RUNS]):
            if run is None:
                continue
            items += runs.get(run) or self._run(run)
            if 1 + 3 * place != LAST:
                places[len(items)] = 2 + 3 * place
                items.append(value_of(groups[2 + 3 * place]))
        if reference is not None:
            items += runs.get(reference) or self._run(reference)
        if stack is not None:
            items.append(stack)
        if len(items) % 2:
            return False
        slot = None if groups[0] is None else self._reserve(groups[0])
        for place, group in places.items():
            if groups[group + 1] is not None:
                self.remember(self._slot(groups[group + 1]), items[place])
        if stack is not None and groups[LAST + 2] is not None:
            self.remember(self._slot(groups[LAST + 2]), stack)
        self.at = self._end
        try:
            made = self.finished_dict(dict(zip(items[::2], items[1::2], strict=True)))
        except TypeError:
            raise self.refused("a key of a dictionary is no plain value") from None
        self._stack.append(made)
        if slot is not None:
            if slot < len(self.memo):
                self.memo[slot] = made
            else:
                self._far[slot] = made
            if type(made) is dict:
                self._slots[id(made)] = slot
        if made is _EVENT and groups[0] == b"\x94":
            self._learn(groups, items, places)
        return True

    def _learn(self, groups: tuple[Any, ...], items: list[Any], places: dict[int, int]) -> None:
        """Keep how an event looks, for the next ones: its address, size, time and call stack alone may differ."""
        keys = {key: place + 1 for place, key in enumerate(items) if not place % 2}
        varying = [key for key in ("addr", "size", "time_us") if key in keys]
        inline = groups[LAST + 3] is not None
        if (
            "device_free" in keys
            or varying[:2] != ["addr", "size"]
            or list(keys)[-1] != "frames"
            or not (inline or groups[LAST + 4])
            or not all(keys[key] in places for key in varying)
            or sorted(varying, key=keys.__getitem__) != varying
            or any(one not in (None, b"\x94") for one in groups[MEMOS])
        ):
            return
        captured = {places[keys[key]] for key in varying}
        pattern = [rb"\}\x94\("]
        memo: list[Any] = [_EVENT]
        values = {group: items[place] for place, group in places.items()}
        for first in range(1, LAST, 3):
            run, value, kept = groups[first : first + 3]
            if run is None:
                break
            pattern += [re.escape(run), b"(%b)" % INTEGERS if first + 1 in captured else re.escape(value)]
            if kept is not None:
                pattern.append(rb"\x94")
                memo.append(values[first + 1])
        if len(varying) < 3:
            pattern.append(b"(?:(a^))?")  # there is no time
        pattern.append(re.escape(groups[LAST]))
        pattern.append(rb"\]%b\((a^)?" % (rb"\x94" if groups[LAST + 2] else b"") if inline else rb"(%b)u" % REFERENCE)
        action = ACTIONS.get(items[keys["action"]], Action.OTHER)
        match = re.compile(b"".join(pattern), re.DOTALL).match
        self._likely.insert(0, _Shape(match, int(action), tuple(memo), inline and groups[LAST + 2] is not None))
        del self._likely[_MOST_SHAPES:]

    def _slot(self, memo: bytes) -> int:
        return len(self.memo) if memo == b"\x94" else int.from_bytes(memo[1:], "little")

    def _reserve(self, memo: bytes) -> int:
        slot = self._slot(memo)
        self.remember(slot, OPEN)
        return slot

    def _run(self, run: bytes) -> tuple[Any, ...]:
        found = self.references(run)
        if len(self._runs) >= _MOST_KEPT:
            self._runs.clear()
        self._runs[run] = found
        return found

    def _stack_run(self, run: bytes) -> Stack:
        found = self.finished_list(list(self.references(run)))
        if type(found) is not Stack:
            raise self.refused("a list of frames holds something else")
        if len(self._stack_runs) >= _MOST_KEPT:
            self._stack_runs.clear()
        self._stack_runs[run] = found
        return found

    # --- what containers mean

    def finished_list(self, made: list[Any]) -> Any:
        """A list of frames is a call stack."""
        if not all(type(one) is Frame for one in made):
            return made
        numbers = tuple(map(self._frame_numbers.__getitem__, made))
        known = self._stack_numbers.get(numbers)
        if known is None:
            known = self._stack_numbers[numbers] = Stack(len(self.stacks))
            self.stacks.append(numbers)
        return known

    def finished_dict(self, made: dict[Any, Any]) -> Any:
        """An event, a frame, or what it is."""
        if "action" in made:
            self._add(made)
            return _EVENT
        if "filename" in made and "line" in made:
            return self._line(made)
        return made

    def _line(self, made: Mapping[Any, Any]) -> Frame:
        filename, name, line = made["filename"], made.get("name", ""), made["line"]
        if type(filename) is not str or type(name) is not str or type(line) is not int:
            raise TypeError("a frame has a value of the wrong kind")
        frame = Frame(self._texts.setdefault(filename, filename), line, self._texts.setdefault(name, name))
        if self._frame_numbers.setdefault(frame, len(self.frames)) == len(self.frames):
            self.frames.append(frame)
        return frame

    def _add(self, made: Mapping[Any, Any]) -> None:
        events = self.events
        stack = made.get("frames")
        events.actions.append(ACTIONS.get(made["action"], Action.OTHER))
        events.addresses.append(made.get("addr", 0))
        events.sizes.append(made.get("size", 0))
        events.stacks.append(stack if type(stack) is Stack else self._stack_of(stack))
        events.times.append(made.get("time_us", 0))
        if "device_free" in made:
            events.free[len(events) - 1] = count(made["device_free"])

    def _stack_of(self, value: Any) -> Stack:
        """The call stack that a list of frames is, wherever it stands."""
        if type(value) is Stack:
            return value
        if value is None:
            return NO_STACK
        found = self.finished_list(list(value))
        if type(found) is not Stack:
            raise self.refused("a list of frames holds something else")
        return found

    # --- the whole

    def snapshot(self) -> Snapshot:
        """Read all of it. Raises `Refused`."""
        try:
            whole = self.load()
        except (OverflowError, TypeError, ValueError):
            raise self.refused("no snapshot of torch's memory: an event has a wrong kind or size of value") from None
        if type(whole) is list:  # `torch.cuda.memory_snapshot()`: the segments alone
            whole = {"segments": whole, "device_traces": []}
        if type(whole) is not dict or "segments" not in whole:
            raise Refused("no snapshot of torch's memory: it holds no `segments`")
        try:
            return Snapshot(
                tuple(map(self._segment, items(whole["segments"]))),
                self._traces(items(whole.get("device_traces", ()))),
                self.frames,
                self.stacks,
                plain(whole.get("allocator_settings", {})),
                tuple(map(annotation, items(whole.get("external_annotations", ())))),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise Refused(f"no snapshot of torch's memory: {type(error).__name__}: {error}") from None

    def _traces(self, lists: Any) -> dict[int, Events]:
        traces, start = {}, 0
        for device, events in enumerate(lists):
            events = items(events)
            if not all(one is _EVENT for one in events):
                raise Refused("no snapshot of torch's memory: a trace holds what is no event")
            traces[device] = self.events.part(start, start + len(events))
            start += len(events)
        if start != len(self.events):
            raise Refused("no snapshot of torch's memory: it holds events outside of its traces, or some twice")
        return traces

    def _segment(self, made: Mapping[str, Any]) -> Segment:
        address = count(made["address"])
        blocks, offset = [], address
        for one in items(made["blocks"]):
            blocks.append(self._block(one, offset))
            offset += blocks[-1].size
        return Segment(
            count(made.get("device", 0)),
            address,
            count(made["total_size"]),
            count(made.get("stream", 0)),
            str(made.get("segment_type", "")),
            tuple(made.get("segment_pool_id", (0, 0))),
            bool(made.get("is_expandable", False)),
            tuple(blocks),
        )

    def _block(self, made: Mapping[str, Any], offset: int) -> Block:
        size = count(made["size"])
        frames, requested = made.get("frames"), made.get("requested_size", size)
        if frames is None and made.get("history"):  # of torch 2.0
            frames, requested = made["history"][0].get("frames"), made["history"][0]["real_size"]
        return Block(
            count(made.get("address", offset)), size, count(requested), str(made["state"]), self._stack_of(frames)
        )


_BEGINNINGS = {
    b"PK\x03\x04": "a zip archive, such as `torch.save` writes, and no snapshot of `torch.cuda.memory._dump_snapshot`",
    b"\x1f\x8b": "compressed: unpack it first (gunzip)",
    b"\x28\xb5\x2f\xfd": "compressed: unpack it first (unzstd)",
}


@contextlib.contextmanager
def _mapped(path: Path) -> Iterator[Buffer]:
    with path.open("rb") as file:
        try:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (ValueError, OSError):  # empty, or no ordinary file
            yield file.read()
            return
        with data:
            yield data


def read_snapshot(path: Path) -> Snapshot:
    """Read a file. Raises `Refused` where it is no snapshot, or more than plain data, and OSError."""
    with _mapped(path) as data:
        return snapshot_of(data)


def snapshot_of(data: Buffer) -> Snapshot:
    """The same of a buffer."""
    if not data:
        raise Refused("the file is empty")
    known = next((what for begin, what in _BEGINNINGS.items() if data[: len(begin)] == begin), None)
    if known is not None or data[0] != 0x80:
        raise Refused(f"the file is {known}" if known is not None else f"the file is {NO_PICKLE}")
    reader = _SnapshotReader(data)
    return reader.snapshot()
