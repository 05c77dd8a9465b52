"""A reader of pickles that makes plain data only, and never the code that a pickle can ask for.

Python's own unpickler builds whatever a file names and, even where every name is refused, can be made to ask for all
memory (a memo slot of number 4,294,967,295). This one knows the opcodes of numbers, texts, lists, tuples and
dictionaries (protocols 2 to 5) and raises `Refused` for any other, with its place in the file. It never asks for more
memory than a small multiple of what it has read.

What a subclass recognises it can keep in a smaller form: `finished_dict` and `finished_list` see each container when
it is complete, and what they return takes its place, also where the file refers to it again.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

MOST_CONTAINERS = 8_000_000
"""Lists and dictionaries that a file may hold beside those that a subclass keeps in another form."""
MOST_SHARED = 100_000
DEEPEST = 64  # containers within containers
LONGEST_INTEGER = 16  # bytes
_PROTOCOLS = range(2, 6)
_BATCH = 1000  # items that Python's pickler writes at a time

Buffer = bytes | mmap.mmap


class Refused(Exception):  # noqa: N818 - nothing failed
    """A file that is not read; the text says why, and where in the file."""


class _Open:
    """Holds the place of a container that is not complete yet."""


OPEN = _Open()
NO_PICKLE = "no pickle of protocol 2 or later; dump it again with `pickle.dump(..., protocol=4)`"
_ITSELF = "the file holds something that contains itself"
_HARMFUL = {
    **dict.fromkeys((0x63, 0x93), "names a function or class"),  # GLOBAL, STACK_GLOBAL
    **dict.fromkeys((0x82, 0x83, 0x84), "names a function or class"),  # EXT1, EXT2, EXT4
    **dict.fromkeys((0x52, 0x81, 0x92, 0x69, 0x6F), "calls a function"),  # REDUCE, NEWOBJ, NEWOBJ_EX, INST, OBJ
    0x62: "sets the state of an object",  # BUILD
    **dict.fromkeys((0x50, 0x51), "refers to an object outside of the file"),  # PERSID, BINPERSID
    **dict.fromkeys((0x8F, 0x90, 0x91), "holds a set"),  # EMPTY_SET, ADDITEMS, FROZENSET
    **dict.fromkeys((0x96, 0x97, 0x98), "holds a buffer"),  # BYTEARRAY8, NEXT_BUFFER, READONLY_BUFFER
}


class Reader:
    """Reads one pickle from a buffer."""

    def __init__(self, data: Buffer) -> None:
        self.data = data
        self.at = 0  # bytes read
        self.size = len(data)
        self.memo: list[Any] = []
        self._far: dict[int, Any] = {}  # slots that are not in order
        self._slots: dict[int, int] = {}  # by identity, the memo's slot of a container that is being filled
        self._stack: list[Any] = []
        self._marks: list[list[Any]] = []
        self._containers = 0
        self._shared = 0

    # --- for subclasses

    def finished_dict(self, made: dict[Any, Any]) -> Any:
        """What takes the place of a dictionary that is complete."""
        return made

    def finished_list(self, made: list[Any]) -> Any:
        """What takes the place of a list that is complete."""
        return made

    def read_ahead(self) -> bool:
        """Read several opcodes at once, those that a subclass knows to stand together; False where there are none."""
        return False

    # --- reading

    def load(self) -> Any:
        """The object that the pickle holds. Raises `Refused`."""
        data, size, steps = self.data, self.size, _STEPS
        while True:
            if self.at >= size:
                raise self.refused("the file is cut off: it ends before the pickle does")
            code = data[self.at]
            if code == 0x7D and self.read_ahead():
                continue
            if code == 0x2E:  # STOP
                return self._result()
            step = steps.get(code)
            if step is None:
                raise self.refused(_complaint(code))
            self.at += 1
            try:
                step(self)
            except (IndexError, struct.error, UnicodeDecodeError):
                raise self.refused("the file is cut off, or no pickle") from None

    def refused(self, reason: str) -> Refused:
        """The exception for what stands at the current place."""
        return Refused(f"{reason} (byte {self.at:,} of {self.size:,})")

    def _result(self) -> Any:
        if len(self._stack) != 1 or self._marks:
            raise self.refused("no pickle: it holds more or less than one object")
        return self._stack.pop()

    def _take(self, count: int) -> bytes:
        end = self.at + count
        if end > self.size:
            raise self.refused(f"the file is cut off: {count:,} bytes are announced and {self.size - self.at:,} follow")
        taken = self.data[self.at : end]
        self.at = end
        return taken

    def _counted(self, width: int) -> bytes:
        return self._take(int.from_bytes(self._take(width), "little"))

    def _count(self) -> None:
        self._containers += 1
        if self._containers > MOST_CONTAINERS:
            raise self.refused(f"the file holds more than {MOST_CONTAINERS:,} lists and dictionaries")

    def _count_shared(self) -> None:
        self._shared += 1
        if self._shared > MOST_SHARED:
            raise self.refused(f"the file refers again to more than {MOST_SHARED:,} lists and dictionaries")

    # --- the memo

    def remember(self, slot: int, value: Any) -> None:
        """Put what a file may refer to again into a slot."""
        size = len(self.memo)
        if slot == size:
            self.memo.append(value)
        elif slot < size or slot in self._far:
            raise self.refused("a reference of the file would change its meaning")
        else:
            self._far[slot] = value
        if type(value) is list or type(value) is dict:
            self._slots[id(value)] = slot

    def recall(self, slot: int) -> Any:
        """What stands in a slot; a container that could still change comes as one that cannot."""
        try:
            value = self.memo[slot] if slot < len(self.memo) else self._far[slot]
        except KeyError:
            raise self.refused("the file refers to something that it does not hold") from None
        if value is OPEN:
            raise self.refused(_ITSELF)
        return self._frozen(value) if type(value) is list or type(value) is dict else value

    def _frozen(self, value: Any) -> Any:
        self._count_shared()
        filled = [stack[-1] for stack in self._marks if stack] + self._stack[-1 if type(value) is list else -2 :]
        if any(value is one for one in filled):
            raise self.refused(_ITSELF)
        if type(value) is dict:
            return self._put_back(value, MappingProxyType(value))
        finished = self.finished_list(value)
        return self._put_back(value, tuple(value) if finished is value else finished)

    def _put_back(self, made: Any, instead: Any) -> Any:
        """Let another object take the place of a container, in the memo, too."""
        slot = self._slots.pop(id(made), None)
        if slot is not None and instead is not made:
            if slot < len(self.memo):
                self.memo[slot] = instead
            else:
                self._far[slot] = instead
        return instead

    def references(self, run: bytes) -> tuple[Any, ...]:
        """What a run of references stands for."""
        found, at, end = [], 0, len(run)
        while at < end:
            if run[at] == 0x68:
                found.append(self.recall(run[at + 1]))
                at += 2
            else:
                found.append(self.recall(int.from_bytes(run[at + 1 : at + 5], "little")))
                at += 5
        return tuple(found)

    # --- opcodes

    def _protocol(self) -> None:
        number = self._take(1)[0]
        if number not in _PROTOCOLS:
            raise self.refused(f"pickle protocol {number} is unknown")

    def _frame(self) -> None:
        length = int.from_bytes(self._take(8), "little")
        if self.at + length > self.size:
            raise self.refused(
                f"the file is cut off: {length:,} bytes are announced and {self.size - self.at:,} follow"
            )

    def _mark(self) -> None:
        if len(self._marks) >= DEEPEST:
            raise self.refused(f"the file nests more than {DEEPEST} lists and dictionaries")
        self._marks.append(self._stack)
        self._stack = []

    def _to_mark(self) -> list[Any]:
        if not self._marks:
            raise self.refused("no pickle: a mark is missing")
        items, self._stack = self._stack, self._marks.pop()
        return items

    def _push_list(self) -> None:
        self._count()
        self._stack.append([])

    def _push_dict(self) -> None:
        self._count()
        self._stack.append({})

    def _append(self) -> None:
        item = self._stack.pop()
        self._extend([item])

    def _appends(self) -> None:
        self._extend(self._to_mark())

    def _extend(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if type(target) is not list:
            raise self.refused("no pickle: items are added to what is no list, or is complete")
        target += items
        if len(items) < _BATCH:
            self._stack[-1] = self._put_back_if_changed(target, self.finished_list(target))

    def _put_back_if_changed(self, made: Any, instead: Any) -> Any:
        return made if instead is made else self._put_back(made, instead)

    def _set_item(self) -> None:
        value = self._stack.pop()
        key = self._stack.pop()
        self._update([key, value])

    def _set_items(self) -> None:
        self._update(self._to_mark())

    def _update(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if type(target) is not dict or len(items) % 2:
            raise self.refused("no pickle: items are added to what is no dictionary, or is complete")
        try:
            target.update(zip(items[::2], items[1::2], strict=True))
        except TypeError:
            raise self.refused("a key of a dictionary is no plain value") from None
        if len(items) < 2 * _BATCH:
            self._stack[-1] = self._put_back_if_changed(target, self.finished_dict(target))

    def _list_to_mark(self) -> None:
        self._count()
        items = self._to_mark()
        self._stack.append(items)

    def _tuple_to_mark(self) -> None:
        self._count()
        items = self._to_mark()
        self._stack.append(tuple(items))

    def _dict_to_mark(self) -> None:
        items = self._to_mark()
        self._push_dict()
        self._update(items)

    def _tuple_of(self, count: int) -> None:
        if len(self._stack) < count:
            raise self.refused("no pickle: a tuple lacks items")
        self._count()
        items = tuple(self._stack[-count:])
        del self._stack[-count:]
        self._stack.append(items)

    def _integer(self, data: bytes) -> None:
        if len(data) > LONGEST_INTEGER:
            raise self.refused(f"an integer of {len(data):,} bytes")
        self._stack.append(int.from_bytes(data, "little", signed=True))

    def _text(self, data: bytes) -> None:
        self._stack.append(data.decode("utf-8", "surrogatepass"))

    def _pop(self) -> None:
        if self._stack:
            self._stack.pop()
        else:
            self._to_mark()

    def _pop_mark(self) -> None:
        self._to_mark()


def _complaint(code: int) -> str:
    harm = _HARMFUL.get(code)
    if harm is not None:
        return f"the file is not plain data: it {harm}, which could run code. It was not read further"
    return f"no pickle: there is no opcode {code:#04x}"


def _pushes(value: Any) -> Callable[[Reader], None]:
    return lambda reader: reader._stack.append(value)


_STEPS: dict[int, Callable[[Reader], None]] = {
    0x80: Reader._protocol,
    0x95: Reader._frame,
    0x28: Reader._mark,
    0x5D: Reader._push_list,
    0x7D: Reader._push_dict,
    0x29: _pushes(()),
    0x4E: _pushes(None),
    0x88: _pushes(True),
    0x89: _pushes(False),
    0x61: Reader._append,
    0x65: Reader._appends,
    0x73: Reader._set_item,
    0x75: Reader._set_items,
    0x6C: Reader._list_to_mark,
    0x64: Reader._dict_to_mark,
    0x74: Reader._tuple_to_mark,
    0x85: lambda reader: reader._tuple_of(1),
    0x86: lambda reader: reader._tuple_of(2),
    0x87: lambda reader: reader._tuple_of(3),
    0x4A: lambda reader: reader._integer(reader._take(4)),
    0x4B: lambda reader: reader._stack.append(reader._take(1)[0]),
    0x4D: lambda reader: reader._stack.append(int.from_bytes(reader._take(2), "little")),
    0x8A: lambda reader: reader._integer(reader._counted(1)),
    0x8B: lambda reader: reader._integer(reader._counted(4)),
    0x47: lambda reader: reader._stack.append(struct.unpack(">d", reader._take(8))[0]),
    0x8C: lambda reader: reader._text(reader._counted(1)),
    0x58: lambda reader: reader._text(reader._counted(4)),
    0x8D: lambda reader: reader._text(reader._counted(8)),
    0x43: lambda reader: reader._stack.append(reader._counted(1)),
    0x42: lambda reader: reader._stack.append(reader._counted(4)),
    0x8E: lambda reader: reader._stack.append(reader._counted(8)),
    0x55: lambda reader: reader._text(reader._counted(1)),
    0x54: lambda reader: reader._text(reader._counted(4)),
    0x94: lambda reader: reader.remember(len(reader.memo), reader._stack[-1]),
    0x71: lambda reader: reader.remember(reader._take(1)[0], reader._stack[-1]),
    0x72: lambda reader: reader.remember(int.from_bytes(reader._take(4), "little"), reader._stack[-1]),
    0x68: lambda reader: reader._stack.append(reader.recall(reader._take(1)[0])),
    0x6A: lambda reader: reader._stack.append(reader.recall(int.from_bytes(reader._take(4), "little"))),
    0x30: Reader._pop,
    0x31: Reader._pop_mark,
}
