"""What lived when, what it was for, and how memory was cut up, from snapshots made by a model of the allocator."""

from __future__ import annotations

import contextlib
import itertools
import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snapshot.made import CALL, ENGINE, MADE, MIB, OPTIMIZER, TORCH, Frames, Recorder, frame, native, snapshot
from torchmemlint.runtime.simulated.allocator import OutOfMemory, rounded
from torchmemlint.snapshot.analysis import analyse
from torchmemlint.snapshot.callers import BEFORE, Caller, Phase, caller, is_users_file, normal
from torchmemlint.snapshot.history import History, grouped, history_of
from torchmemlint.snapshot.layout import layout, reserved_at
from torchmemlint.snapshot.reader import snapshot_of
from torchmemlint.snapshot.records import Frame, Snapshot

MODEL = "/home/me/project/model.py"
FORWARD = [*MADE, CALL, frame(12, "forward", MODEL), CALL, frame(30)]
STEP = [*MADE, frame(60, "adamw", f"{TORCH}optim/adamw.py"), OPTIMIZER, frame(33)]
SETUP = [*MADE, frame(900, "_apply", f"{TORCH}nn/modules/module.py"), frame(8)]
ACCUMULATES = [native("torch::autograd::AccumulateGrad::apply(std::vector<at::Tensor>&&)"), *ENGINE]


def read(*made: Recorder) -> Snapshot:
    return snapshot_of(pickle.dumps(snapshot(*made)))


def history(made: Recorder) -> History:
    return history_of(read(made), made.model.device)


def training(steps: int, made: Recorder | None = None, leak: int = 0) -> Recorder:
    """Steps of a training: parameters, activations, gradients, state; `leak` bytes are kept of each."""
    made = made or Recorder()
    made.allocate(4 * MIB, *SETUP)
    for step in range(steps):
        kept = made.allocate(8 * MIB, *FORWARD)
        passing = made.allocate(3 * MIB, *FORWARD[:3], frame(13, "forward", MODEL), CALL, frame(30))
        made.free(passing, *FORWARD)
        if leak:
            made.allocate(leak, *MADE, frame(31))
        inner = made.allocate(2 * MIB, *ENGINE)
        gradient = made.allocate(4 * MIB, *ACCUMULATES)
        made.free(kept, *ENGINE)
        made.free(inner, *ENGINE)
        if not step:
            made.allocate(4 * MIB, *STEP)
        scratch = made.allocate(MIB, *STEP)
        made.free(scratch, *STEP)
        made.annotate("Optimizer.step#AdamW.step", starts=False)
        made.free(gradient, frame(34))
    return made


# --- sums


class _Random:
    def __init__(self, device: int = 0) -> None:
        self.made = Recorder(64 * MIB, device)
        self.live: list[Any] = []

    def act(self, number: int) -> None:
        if number % 3 and self.live:
            self.made.free(self.live.pop(number % len(self.live)))
            return
        with contextlib.suppress(OutOfMemory):
            self.live.append(self.made.allocate(1 + number * 997 % (9 * MIB), *FORWARD))


@given(st.lists(st.integers(0, 1 << 20), max_size=60), st.integers(0, 60))
@settings(max_examples=150, deadline=None)
def test_the_sum_of_what_lives_is_what_is_allocated(actions: list[int], unseen: int) -> None:
    """Also where the history begins late, as that of a ring buffer does."""
    program = _Random()
    peak = 0
    for number in actions:
        program.act(number)
        peak = max(peak, program.made.model.requested)
    whole = snapshot(program.made)
    del whole["device_traces"][0][: min(unseen, len(whole["device_traces"][0]))]
    found = snapshot_of(pickle.dumps(whole))
    followed = history_of(found, 0)
    ledger = followed.ledger
    alive = ledger.alive_at(ledger.now, "cuda:0")
    requested = program.made.model.requested
    assert sum(map(ledger.nbytes, alive)) == requested == ledger.live.get("cuda:0", 0)
    assert sum(sum(map(ledger.nbytes, records)) for records in grouped(followed, ledger.now).values()) == requested
    assert sum(ledger.bytes_by_kind(ledger.now, "cuda:0").values()) == requested
    assert sum(one.size for one in found.of(0)) == program.made.model.reserved == reserved_at(found, 0, 1 << 30)
    assert followed.peak <= peak
    if not unseen:
        assert followed.peak == peak
        assert followed.whole
        assert not followed.lost


@given(st.lists(st.integers(0, 1 << 20), max_size=60))
@settings(max_examples=60, deadline=None)
def test_what_torchs_own_reader_counts(actions: list[int]) -> None:
    viz = pytest.importorskip("torch.cuda._memory_viz")
    program = _Random()
    for number in actions:
        program.act(number)
    whole = snapshot(program.made)
    found = snapshot_of(pickle.dumps(whole))
    device = analyse(found, "x").devices
    if not device:
        return
    told = dict(line.split(": ") for line in viz.segsum(whole).splitlines() if line.startswith("total_"))
    assert told["total_reserved"] == str(viz.Bytes(device[0].reserved))
    assert told["total_allocated"] == str(viz.Bytes(device[0].allocated))


@given(st.lists(st.integers(0, 1 << 20), min_size=1, max_size=80))
@settings(max_examples=100, deadline=None)
def test_free_pieces_at_each_failure(actions: list[int]) -> None:
    """The model of the allocator knows its free blocks; those that the snapshot shows are never fewer bytes."""
    program = _Random()
    seen = []
    for number in actions:
        failed = len(program.made.events)
        program.act(number)
        if any(one["action"] == "oom" for one in program.made.events[failed:]):
            model = program.made.model
            seen.append((model.reserved, model.requested, model.allocated))
    found = read(program.made)
    followed = history_of(found, 0)
    assert len(followed.failures) == len(seen)
    for failure, (reserved, requested, allocated) in zip(followed.failures, seen, strict=True):
        there = layout(found, followed, failure)
        assert there.reserved == reserved
        assert sum(map(followed.ledger.nbytes, followed.ledger.alive_at(failure.event, "cuda:0"))) == requested
        assert there.missing == max(0, there.needed - failure.device_free) > 0
        assert there.largest_free <= there.free <= reserved - requested
        assert there.largest_free < rounded(failure.requested) or allocated > requested


# --- phases and kinds


@pytest.mark.parametrize(
    ("frames", "phase", "line"),
    [
        (FORWARD, Phase.FORWARD, 12),
        (ENGINE, Phase.BACKWARD, 0),
        (STEP, Phase.OPTIMIZER, 33),
        (SETUP, Phase.SETUP, 8),
        ([*MADE, frame(5, "__init__", MODEL), frame(9)], Phase.SETUP, 5),
        ([*MADE, frame(70, "collate", f"{TORCH}utils/data/_utils/collate.py"), frame(29)], Phase.INPUT, 29),
        ([native("torch::autograd::THPVariable_to(_object*, _object*, _object*)"), frame(28)], Phase.INPUT, 28),
        ([*MADE, frame(28)], Phase.OTHER, 28),
        ([native("at::cuda::getNewWorkspace()"), *FORWARD], Phase.WORKSPACE, 12),
        ([*MADE, frame(40, "_engine_run_backward", f"{TORCH}autograd/graph.py"), frame(32)], Phase.BACKWARD, 32),
        ([*MADE, CALL, frame(12, "forward", MODEL), frame(9, "unpack_hook", f"{TORCH}utils/checkpoint.py")],
         Phase.BACKWARD, 12),
    ],
)  # fmt: skip
def test_what_a_stack_says(frames: Frames, phase: Phase, line: int) -> None:
    said = caller([Frame(**one) for one in frames])
    assert (said.phase, said.site.line) == (phase, line)


def test_stacks_that_are_missing() -> None:
    assert caller([]) == Caller(BEFORE, (), Phase.OTHER, "")
    guessed = caller([], native=False)
    assert guessed.phase is Phase.BACKWARD
    assert guessed.guessed


@pytest.mark.parametrize(
    ("path", "users"),
    [
        ("/home/me/train.py", True),
        ("C:/work/train.py", True),
        ("/tmp/ipykernel_12/345.py", True),
        ("/usr/lib/python3.12/contextlib.py", False),
        ("/venv/lib/python3.12/site-packages/einops/einops.py", False),
        ("/usr/lib/python3/dist-packages/x.py", False),
        ("<frozen runpy>", False),
        ("<eval_with_key>.12", False),
        ("/home/me/torch_project/model.py", True),
    ],
)
def test_whose_file_it_is(path: str, users: bool) -> None:
    assert is_users_file(path) is users


def test_paths_of_other_systems() -> None:
    assert normal("/home/me/scripts/../src/a.py") == "/home/me/src/a.py"
    assert normal("C:\\work\\train.py") == "C:/work/train.py"


def test_kinds() -> None:
    made = training(3)
    followed = history(made)
    kinds = {
        (site.line, kind.label)
        for index in range(len(followed.ledger))
        for site, kind in [(followed.ledger.site(index), followed.ledger.kind(index))]
    }
    assert kinds == {
        (8, "parameter"),
        (12, "saved activation"),
        (13, "temporary"),
        (0, "temporary"),
        (0, "gradient"),
        (33, "optimizer state"),
        (33, "temporary"),
    }
    assert len(followed.steps) == 3
    assert not followed.doubtful


def test_kinds_at_a_failure_follow_from_earlier_steps() -> None:
    made = Recorder(50 * MIB)
    training(2, made)
    made.allocate(8 * MIB, *FORWARD)
    with pytest.raises(OutOfMemory):
        made.allocate(40 * MIB, *FORWARD)
    followed = history(made)
    kinds = followed.ledger.bytes_by_kind(followed.failures[0].event, followed.name)
    assert {kind.label: size for kind, size in kinds.items()} == {
        "parameter": 4 * MIB,
        "optimizer state": 4 * MIB,
        "saved activation": 8 * MIB,
    }
    assert not followed.doubtful


def test_kinds_in_the_first_step_are_said_to_be_doubtful() -> None:
    made = Recorder()
    made.allocate(8 * MIB, *FORWARD)
    followed = history(made)
    assert followed.doubtful == {0}
    assert followed.ledger.kind(0).label == "saved activation"


def test_steps_without_annotations_end_where_a_forward_begins_again() -> None:
    made = training(4)
    made.annotations.clear()
    assert len(history(made).steps) == 3  # that the last one ended is not to be seen


# --- the analysis


def test_what_grows_from_step_to_step() -> None:
    device = analyse(read(training(12, leak=3000)), "x").devices[0]
    assert [(one.site.line, one.bytes_per_step, one.steady) for one in device.growing] == [(31, 3000, True)]
    assert not analyse(read(training(12)), "x").devices[0].growing


def test_what_waits_for_another_stream_is_not_allocated() -> None:
    made = Recorder()
    block = made.allocate(5 * MIB, frame(1))
    whole = snapshot(made)
    freed = {**whole["device_traces"][0][-1], "action": "free_requested"}
    whole["device_traces"][0].append(freed)
    whole["segments"][0]["blocks"][0]["state"] = "active_awaiting_free"
    device = analyse(snapshot_of(pickle.dumps(whole)), "x").devices[0]
    assert (device.allocated, device.active) == (0, block.size)
    assert device.peak.allocated == 5 * MIB


def test_skipped_actions() -> None:
    """`skip_actions` leaves one of the two events of a free out."""
    for left_out in ("free_requested", "free_completed"):
        whole = snapshot(training(3))
        whole["device_traces"][0] = [one for one in whole["device_traces"][0] if one["action"] != left_out]
        followed = history_of(snapshot_of(pickle.dumps(whole)), 0)
        assert followed.ledger.live["cuda:0"] == 8 * MIB
        assert not followed.lost


def test_a_gap_in_the_history_is_noticed() -> None:
    whole = snapshot(training(3))
    frees = [at for at, one in enumerate(whole["device_traces"][0]) if one["action"].startswith("free")]
    for at in reversed(frees[:2]):
        del whole["device_traces"][0][at]
    device = analyse(snapshot_of(pickle.dumps(whole)), "x").devices[0]
    assert any("do not fit" in note for note in device.notes)


def test_no_history_at_all() -> None:
    whole = snapshot(training(1))
    whole["device_traces"] = [[]]
    device = analyse(snapshot_of(pickle.dumps(whole)), "x").devices[0]
    assert any("no history" in note for note in device.notes)
    assert device.peak.allocated == device.allocated == 8 * MIB
    assert device.peak.reserved == device.reserved
    assert {line.site.line for line in device.peak.lines} == {8, 33}


def test_several_devices() -> None:
    made = training(2, Recorder(device=0)), training(5, Recorder(device=1), leak=MIB)
    devices = analyse(read(*made), "x").devices
    assert [one.device for one in devices] == ["cuda:0", "cuda:1"]
    assert [one.steps for one in devices] == [2, 5]
    assert devices[1].allocated - devices[0].allocated == 5 * MIB


def test_gradients_in_a_forward_are_pointed_out() -> None:
    made = training(1)
    gradient = made.allocate(4 * MIB, *ACCUMULATES)
    made.allocate(30 * MIB, *FORWARD)
    made.free(gradient)
    hints = analyse(read(made), "x").devices[0].peak.hints
    assert len(hints) == 1
    assert "set_to_none" in hints[0]


def test_fragments_are_named_as_the_reason() -> None:
    made = Recorder(60 * MIB)
    blocks = [made.allocate(5 * MIB, frame(1)) for _ in range(12)]
    for block in itertools.islice(blocks, 0, None, 2):
        made.free(block)
    with pytest.raises(OutOfMemory):
        made.allocate(12 * MIB, frame(2))
    failed = analyse(read(made), "x").devices[0].failures[0]
    assert (failed.requested, failed.device_free, failed.missing) == (12 * MIB, 0, 12 * MIB)
    assert failed.joined_would_fit
    assert (failed.free, failed.pieces, failed.largest_free) == (30 * MIB, 6, 5 * MIB)
    assert failed.by_lines.enough
    assert [(site.line, nbytes) for site, nbytes in failed.by_lines.lines] == [(1, 30 * MIB)]


def test_a_limit_is_told_from_a_full_device() -> None:
    made = Recorder(20 * MIB)
    with pytest.raises(OutOfMemory):
        made.allocate(22 * MIB, frame(1))
    made.events[-1]["device_free"] = 1 << 33
    failed = analyse(read(made), "x").devices[0].failures[0]
    assert failed.missing == 0


def test_expandable_segments_are_taken_back() -> None:
    made = Recorder(64 * MIB)
    made.allocate(20 * MIB, frame(1))
    with pytest.raises(OutOfMemory):
        made.allocate(50 * MIB, frame(2))
    made.allocate(20 * MIB, frame(3))
    whole = snapshot(made)
    for event in whole["device_traces"][0]:
        event["action"] = event["action"].replace("segment_alloc", "segment_map")
    first, second = whole["segments"]
    assert first["address"] + first["total_size"] == second["address"]
    first["total_size"] += second["total_size"]  # one segment that grew
    first["blocks"] += second["blocks"]
    first["is_expandable"] = True
    del whole["segments"][1]
    found = snapshot_of(pickle.dumps(whole))
    followed = history_of(found, 0)
    there = layout(found, followed, followed.failures[0])
    assert there.expandable
    assert there.reserved == 20 * MIB
    assert there.needed == 60 * MIB
