"""The history of one device, told by a snapshot's events: what lived when, what it was for, and when steps ended.

What a trace does not show is taken from its end: the blocks of the segments that no event allocated were there before.
Bytes are those that were asked for, as torch's own reader counts them, not those of the allocator's blocks.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from torchmemlint.immutable import immutable
from torchmemlint.runtime.kinds import Kind
from torchmemlint.runtime.ledger import ALIVE, Ledger, Site
from torchmemlint.snapshot.callers import Caller, IsUsers, Phase, caller, is_users_file
from torchmemlint.snapshot.records import Action, Events, Snapshot, Stack

STEPS = "step"
_KINDS = tuple(Kind)
_ALLOC, _OOM = int(Action.ALLOC), int(Action.OOM)  # members of enumerations take their time
_FREE_REQUESTED, _FREE_COMPLETED = int(Action.FREE_REQUESTED), int(Action.FREE_COMPLETED)
_NOT_FREED = -1
_PHASES = (Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER)


class _Ledger(Ledger):
    """A ledger of one device, whose callers are looked up once."""

    def number(self, who: Caller, device: str) -> tuple[int, int, int, bool]:
        """What `add` is to be given for a caller."""
        numbers = self._devices.number(device), self._sites.number(who.site), self._operations.number(who.operation)
        return *numbers, who.phase is Phase.BACKWARD

    def add(self, nbytes: int, device: str, numbers: tuple[int, int, int, bool]) -> int:
        """The same as `allocate`."""
        index, now = len(self._nbytes), len(self._events)
        self._nbytes.append(nbytes)
        self._device.append(numbers[0])
        self._site.append(numbers[1])
        self._operation.append(numbers[2])
        self._backward.append(numbers[3])
        self._kind.append(Kind.OTHER)
        self._born.append(now)
        self._died.append(ALIVE)
        self._events.append(index * 2)
        live = self.live[device] = self.live.get(device, 0) + nbytes
        if live > self.peaks.get(device, 0):
            self.peaks[device] = live
            self.peak_events[device] = now + 1
        return index

    def kind(self, index: int) -> Kind:
        """What evidence says, and nothing beyond."""
        return _KINDS[self._kind[index]]


@immutable()
class Failure:
    """A request that failed: its bytes, what CUDA had free then, and the event before which it happened."""

    place: int  # in the trace
    event: int  # in the ledger
    requested: int
    device_free: int
    stack: Stack


@dataclass(slots=True)
class History:
    """What happened on a device. Records and events are the ledger's."""

    device: int
    ledger: Ledger
    callers: list[Caller]
    stacks: array[int]  # by record: the call stack that allocated it
    addresses: array[int]  # by record
    failures: tuple[Failure, ...]
    doubtful: set[int]  # records whose kind is concluded from their line alone
    lost: int  # events that do not fit to each other
    whole: bool  # the trace shows what the program allocated from its beginning
    places: array[int]  # by event of the ledger: its place in the trace
    phases: Phases

    @property
    def name(self) -> str:
        """The device as torch calls it."""
        return f"cuda:{self.device}"

    def caller(self, index: int) -> Caller:
        """Who allocated a record."""
        return self.callers[self.stacks[index]]

    @property
    def peak(self) -> int:
        """The most bytes at once."""
        return self.ledger.peaks.get(self.name, 0)

    @property
    def peak_event(self) -> int:
        """The event after which that was."""
        return self.ledger.peak_events.get(self.name, 0)

    def place(self, event: int) -> int:
        """The place in the trace that comes after so many events of the ledger."""
        return self.places[event - 1] + 1 if event else 0

    def phase_at(self, event: int) -> Phase:
        """What the program was doing after so many events, by what it allocated last."""
        return self.phases.at(event - 1)

    @property
    def steps(self) -> list[int]:
        """The events at which steps ended."""
        return self.ledger.marks.get(STEPS, [])


def history_of(snapshot: Snapshot, device: int, is_users: IsUsers = is_users_file) -> History:
    """Follow the events of a device."""
    return _Follower(snapshot, device, is_users).history()


class _Follower:
    def __init__(self, snapshot: Snapshot, device: int, is_users: IsUsers) -> None:
        self._snapshot = snapshot
        self._device = device
        self._name = f"cuda:{device}"
        self._events = snapshot.traces.get(device, Events())
        native = any(not frame.python for frame in snapshot.frames)
        stacks = (tuple(snapshot.stack(number)) for number in range(len(snapshot.stacks)))
        self._callers = [caller(frames, is_users, native=native or not len(self._events)) for frames in stacks]
        self._ledger = _Ledger()
        self._numbers = [self._ledger.number(who, self._name) for who in self._callers]
        self._stacks, self._addresses = array("i"), array("Q")
        self._freed_in = array("b")  # by record: the phase in which it was freed, or _NOT_FREED
        self._lost = 0
        self._places = array("q")
        self._place = -1

    def history(self) -> History:
        live = self._before()
        waiting: dict[int, int] = {}
        failures = []
        ends = self._step_ends()
        ledger, events = self._ledger, self._events
        for place, (action, address, size, stack) in enumerate(
            zip(events.actions, events.addresses, events.sizes, events.stacks, strict=True)
        ):
            self._place = place
            if ends and place == ends[0]:
                ledger.mark(STEPS)
                del ends[0]
            if action == _ALLOC:
                if address in live:  # its freeing was not recorded
                    self._lost += 1
                    self._free(live.pop(address), 0)
                live[address] = self._allocate(address, size, stack)
            elif action == _FREE_REQUESTED or (action == _FREE_COMPLETED and address not in waiting):
                index = live.pop(address, None)
                if index is not None:
                    self._free(index, stack)
                    if action == _FREE_REQUESTED:
                        waiting[address] = index
                elif action == _FREE_REQUESTED:
                    self._lost += 1
            elif action == _FREE_COMPLETED:
                del waiting[address]
            elif action == _OOM:
                failures.append(Failure(place, ledger.now, size, events.free.get(place, 0), Stack(stack)))
        for _ in ends:
            ledger.mark(STEPS)
        doubtful = self._kinds()
        return History(
            self._device,
            ledger,
            self._callers,
            self._stacks,
            self._addresses,
            tuple(failures),
            doubtful,
            self._lost,
            not self._had_before,
            self._places,
            self._phases,
        )

    # --- records

    def _allocate(self, address: int, size: int, stack: int) -> int:
        self._stacks.append(stack)
        self._addresses.append(address)
        self._freed_in.append(_NOT_FREED)
        self._places.append(self._place)
        return self._ledger.add(size, self._name, self._numbers[stack])

    def _free(self, index: int, stack: int) -> None:
        self._places.append(self._place)
        self._ledger.free(index)
        self._freed_in[index] = self._callers[stack].phase

    def _before(self) -> dict[int, int]:
        """Allocate what was there before the first event; by address."""
        events = self._events
        seen: set[int] = set()
        gone: dict[int, int] = {}  # freed by the trace without having been allocated by it
        ends: set[int] = set()  # what the trace shows to be allocated at its end
        for action, address, size in zip(events.actions, events.addresses, events.sizes, strict=True):
            if action == _ALLOC:
                seen.add(address)
                ends.add(address)
            elif action in (_FREE_REQUESTED, _FREE_COMPLETED):
                ends.discard(address)
                if address not in seen:
                    gone[address] = size
                    seen.add(address)
        live: dict[int, int] = {}
        for address, size in gone.items():
            live[address] = self._allocate(address, size, 0)
        blocks = (block for one in self._snapshot.of(self._device) for block in one.blocks if block.allocated)
        for block in blocks:
            if block.address not in ends and block.address not in live:
                live[block.address] = self._allocate(block.address, block.requested, block.stack)
        self._had_before = bool(live)
        return live

    # --- steps

    def _step_ends(self) -> list[int]:
        """The places of the trace before which a step ended: where an optimizer's is told to, else new forwards."""
        events = self._events
        told = sorted(
            one.time
            for one in self._snapshot.annotations
            if not one.starts and one.device == self._device and one.name.startswith("Optimizer.step#")
        )
        if told and len(events) and events.times[-1]:
            return [bisect_left(events.times, time) for time in told]
        ends, before = [], Phase.OTHER
        for place, (action, stack) in enumerate(zip(events.actions, events.stacks, strict=True)):
            if action != _ALLOC:
                continue
            phase = self._callers[stack].phase
            if phase in _PHASES:
                if phase is Phase.FORWARD and before in (Phase.BACKWARD, Phase.OPTIMIZER):
                    ends.append(place)
                before = phase
        return ends

    # --- kinds

    def _kinds(self) -> set[int]:
        """Note what each record was for; give those of which it is concluded from the line alone."""
        ledger = self._ledger
        self._phases = self._found_phases()
        usual: defaultdict[int, Counter[Kind]] = defaultdict(Counter)  # by call stack, of what was freed
        longest: Counter[int] = Counter()  # by call stack: the events that its temporary ones lived
        open_ones: list[int] = []
        for index, stack in enumerate(self._stacks):
            kind = self._kind(index, self._callers[stack], self._phases)
            if kind is None:
                open_ones.append(index)
                continue
            ledger.claim(index, kind)
            if ledger.died(index) != ALIVE:
                usual[stack][kind] += 1
                if kind is Kind.TEMPORARY:
                    longest[stack] = max(longest[stack], ledger.died(index) - ledger.born(index))
        doubtful = set()
        for index in open_ones:
            stack = self._stacks[index]
            seen = usual[stack]
            outlived = ledger.now - ledger.born(index) > longest[stack]
            kinds = [kind for kind, _ in seen.most_common() if not (outlived and kind is Kind.TEMPORARY)]
            if kinds:
                ledger.claim(index, kinds[0])
                continue
            doubtful.add(index)
            forward = self._callers[self._stacks[index]].phase is Phase.FORWARD
            ledger.claim(index, Kind.SAVED if forward else Kind.GRADIENT)
        return doubtful

    def _kind(self, index: int, who: Caller, phases: Phases) -> Kind | None:
        """What evidence says of a record; None where it would have to be freed for that."""
        died = self._ledger.died(index)
        born = self._ledger.born(index)
        match who.phase:
            case Phase.SETUP:
                return Kind.PARAMETER
            case Phase.INPUT:
                return Kind.INPUT
            case Phase.OPTIMIZER:
                outlives = died == ALIVE or phases.leaves(Phase.OPTIMIZER, born, died)
                return Kind.OPTIMIZER_STATE if outlives else Kind.TEMPORARY
            case Phase.BACKWARD:
                if who.accumulates:
                    return Kind.GRADIENT
                if died == ALIVE and not phases.leaves(Phase.BACKWARD, born, self._ledger.now):
                    return None
                return Kind.GRADIENT if died == ALIVE or phases.leaves(Phase.BACKWARD, born, died) else Kind.TEMPORARY
            case Phase.FORWARD:
                if died == ALIVE:
                    return None
                freed_in_backward = self._freed_in[index] == Phase.BACKWARD
                return Kind.SAVED if freed_in_backward or phases.in_backward(died) else Kind.TEMPORARY
        return Kind.OTHER

    def _found_phases(self) -> Phases:
        changes: list[tuple[int, Phase]] = []
        before = Phase.OTHER
        for index, stack in enumerate(self._stacks):
            phase = self._callers[stack].phase
            if phase in _PHASES and phase is not before:
                changes.append((self._ledger.born(index), phase))
                before = phase
        return Phases(changes)


class Phases:
    """Which phase the program was in, by what it allocated: each from the event at which it began."""

    def __init__(self, changes: Sequence[tuple[int, Phase]]) -> None:
        self._begins = array("q", (event for event, _ in changes))
        self._phases = [phase for _, phase in changes]

    def _number(self, event: int) -> int:
        return bisect_left(self._begins, event + 1) - 1

    def at(self, event: int) -> Phase:
        """The phase of an event."""
        number = self._number(event)
        return self._phases[number] if number >= 0 else Phase.OTHER

    def in_backward(self, event: int) -> bool:
        """Whether an event happened while a backward went on."""
        return self.at(event) is Phase.BACKWARD

    def leaves(self, phase: Phase, born: int, died: int) -> bool:
        """Whether what was made in a phase still lives when another begins."""
        number = self._number(born)
        after = number + 1
        return after < len(self._begins) and self._begins[after] <= died


def grouped(history: History, event: int) -> dict[Site, list[int]]:
    """The records alive after so many events, by the line that allocated them, most bytes first."""
    found: dict[Site, list[int]] = {}
    for index in history.ledger.alive_at(event, history.name):
        found.setdefault(history.ledger.site(index), []).append(index)
    nbytes = history.ledger.nbytes
    return dict(sorted(found.items(), key=lambda one: -sum(map(nbytes, one[1]))))
