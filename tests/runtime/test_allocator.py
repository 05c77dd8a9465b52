"""The model of the caching allocator, by hand-worked cases and by properties that must always hold."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchmemlint.runtime.simulated import cards
from torchmemlint.runtime.simulated.allocator import (
    Allocations,
    Block,
    CachingAllocator,
    OutOfMemory,
    rounded,
    segment_size,
)
from torchmemlint.runtime.simulated.settings import expands_by_environment, max_split_of_environment

torch = pytest.importorskip("torch")

from torchmemlint.runtime import track_memory  # noqa: E402
from torchmemlint.runtime.simulated.expandable import ExpandableAllocator  # noqa: E402

MIB = 1 << 20


@pytest.mark.parametrize(("nbytes", "size"), [(1, 512), (512, 512), (513, 1024), (MIB, MIB), (MIB + 1, MIB + 512)])
def test_blocks_are_multiples_of_512(nbytes: int, size: int) -> None:
    assert rounded(nbytes) == size


@pytest.mark.parametrize(
    ("size", "segment"),
    [
        (512, 2 * MIB),
        (MIB, 2 * MIB),
        (MIB + 512, 20 * MIB),
        (10 * MIB - 512, 20 * MIB),
        (10 * MIB, 10 * MIB),
        (10 * MIB + 512, 12 * MIB),
        (33 * MIB, 34 * MIB),
    ],
)
def test_segments(size: int, segment: int) -> None:
    assert segment_size(size) == segment


def test_nothing_is_allocated_for_nothing() -> None:
    allocator = CachingAllocator()
    assert allocator.allocate(0) is None
    assert allocator.reserved == 0
    allocator.free(None)


def test_small_blocks_share_a_segment() -> None:
    allocator = CachingAllocator()
    blocks = [allocator.allocate(1000) for _ in range(2048)]
    assert allocator.allocated == 2048 * 1024
    assert allocator.requested == 2048 * 1000
    assert allocator.reserved == 2 * MIB
    allocator.allocate(1)
    assert allocator.reserved == 4 * MIB
    assert len({block.address for block in blocks if block}) == 2048


def test_the_rest_of_a_large_block_is_split_off_only_above_one_mebibyte() -> None:
    allocator = CachingAllocator()
    allocator.allocate(19 * MIB - 512)  # its own segment of 20 MiB, whose rest is just over 1 MiB
    assert allocator.allocated == 19 * MIB - 512
    allocator = CachingAllocator()
    allocator.allocate(19 * MIB)  # the rest is 1 MiB and stays with the block
    assert allocator.allocated == 20 * MIB
    assert allocator.requested == 19 * MIB


def test_the_best_fit_is_taken() -> None:
    allocator = CachingAllocator()
    large, small = allocator.allocate(64 * MIB), allocator.allocate(32 * MIB)
    allocator.free(large)
    allocator.free(small)
    again = allocator.allocate(32 * MIB)
    assert again is small
    assert allocator.reserved == 96 * MIB


def test_neighbours_join() -> None:
    allocator = CachingAllocator()
    blocks = [allocator.allocate(5 * MIB) for _ in range(4)]
    assert allocator.reserved == 20 * MIB
    for block in (blocks[0], blocks[2], blocks[1], blocks[3]):
        allocator.free(block)
    (segment,) = allocator.snapshot()
    assert [block["size"] for block in segment["blocks"]] == [20 * MIB]
    allocator.empty_cache()
    assert allocator.reserved == 0
    assert allocator.peak_reserved == 20 * MIB


def test_cached_segments_are_given_back_before_memory_runs_out() -> None:
    allocator = CachingAllocator(limit=64 * MIB)
    allocator.free(allocator.allocate(40 * MIB))
    allocator.allocate(50 * MIB)
    assert allocator.reserved == 50 * MIB
    assert allocator.statistics()["num_alloc_retries"] == 1


def test_out_of_memory_says_what_torch_says() -> None:
    allocator = CachingAllocator(limit=64 * MIB)
    allocator.allocate(40 * MIB)
    with pytest.raises(OutOfMemory, match=r"^CUDA out of memory\. Tried to allocate 30\.00 MiB\. GPU 0 has a total"):
        allocator.allocate(30 * MIB)
    assert allocator.statistics()["num_ooms"] == 1
    assert allocator.allocated == 40 * MIB


def test_blocks_above_max_split_size_are_not_split() -> None:
    allocator = CachingAllocator(max_split=32 * MIB)
    allocator.free(allocator.allocate(64 * MIB))
    allocator.allocate(16 * MIB)  # must not break the large block
    assert allocator.reserved == 80 * MIB
    allocator.allocate(60 * MIB)  # as large: may have it, whole
    assert allocator.reserved == 80 * MIB
    assert allocator.allocated == 80 * MIB


def test_max_split_size_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "garbage_collection_threshold:0.8,max_split_size_mb:128")
    assert max_split_of_environment() == 128 * MIB
    monkeypatch.delenv("PYTORCH_CUDA_ALLOC_CONF")
    assert max_split_of_environment() is None


def test_a_block_is_freed_once() -> None:
    allocator = CachingAllocator()
    block = allocator.allocate(1)
    allocator.free(block)
    with pytest.raises(ValueError, match="free already"):
        allocator.free(block)


def test_statistics_are_nested_as_torch_has_them() -> None:
    allocator = CachingAllocator()
    block = allocator.allocate(3 * MIB)
    allocator.allocate(100)
    allocator.free(block)
    found = allocator.statistics()
    assert found["allocated_bytes"]["all"] == {
        "current": 512,
        "peak": 3 * MIB + 512,
        "allocated": 3 * MIB + 512,
        "freed": 3 * MIB,
    }
    assert found["segment"]["large_pool"]["current"] == 1
    assert found["inactive_split_bytes"]["small_pool"]["current"] == 2 * MIB - 512
    assert found["inactive_split_bytes"]["large_pool"]["current"] == 0
    allocator.reset_peaks()
    assert allocator.peak_allocated == 512


def test_the_listener_keeps_blocks_by_record() -> None:
    listener = Allocations({"cuda:0": CachingAllocator()})
    listener.allocated(7, 1000, "cuda:0")
    listener.allocated(8, 1000, "cpu")
    assert listener.allocators["cuda:0"].allocated == 1024
    listener.freed(8, 1000, "cpu")
    listener.freed(7, 1000, "cuda:0")
    assert listener.allocators["cuda:0"].allocated == 0


def check(allocator: CachingAllocator, used: list[Block]) -> None:
    """What must hold at any moment."""
    check_blocks(allocator, used)
    split = sum(
        block["size"]
        for segment in allocator.snapshot()
        if len(segment["blocks"]) > 1
        for block in segment["blocks"]
        if block["state"] == "inactive"
    )
    assert allocator.statistics()["inactive_split_bytes"]["all"]["current"] == split


def check_blocks(allocator: CachingAllocator, used: list[Block]) -> None:
    """What holds of any kind of segment."""
    segments = allocator.snapshot()
    spans = sorted((block.address, block.address + block.size) for block in used)
    assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(spans))
    total = free = 0
    for segment in segments:
        address = segment["address"]
        states = []
        for block in segment["blocks"]:
            assert block["address"] == address
            address += block["size"]
            states.append(block["state"])
            free += block["size"] if block["state"] == "inactive" else 0
        assert address == segment["address"] + segment["total_size"]
        assert ("inactive", "inactive") not in list(itertools.pairwise(states))
        total += segment["total_size"]
    assert total == allocator.reserved == allocator.allocated + free
    assert allocator.allocated == sum(block.size for block in used)
    assert allocator.requested == sum(block.requested for block in used)


SIZES = st.one_of(st.integers(1, 4096), st.integers(1, 3 * MIB), st.integers(1, 40 * MIB))
ACTIONS = st.lists(st.one_of(SIZES, st.integers(-50, -1), st.just(0)), max_size=80)


def perform(
    allocator: CachingAllocator,
    actions: list[int],
    checked: Callable[[CachingAllocator, list[Block]], None],
    served: Callable[[Block, int], bool],
) -> None:
    """A positive number allocates, a negative one frees the block at that place, 0 empties the cache. All is freed."""
    used: list[Block] = []
    for action in actions:
        if action > 0:
            try:
                block = allocator.allocate(action)
            except OutOfMemory:
                assert allocator.limit is not None
                continue
            assert block is not None
            assert served(block, action)
            used.append(block)
        elif action == 0:
            allocator.empty_cache()
        elif used:
            allocator.free(used.pop(action % len(used)))
        checked(allocator, used)
        assert allocator.limit is None or allocator.reserved <= allocator.limit
    for block in used:
        allocator.free(block)
    checked(allocator, [])


@settings(max_examples=150, deadline=None)
@given(ACTIONS, st.sampled_from([None, 20 * MIB, 64 * MIB]), st.sampled_from([None, 128 * MIB]))
def test_properties(actions: list[int], max_split: int | None, limit: int | None) -> None:
    allocator = CachingAllocator(limit=limit, max_split=max_split)
    perform(allocator, actions, check, lambda block, asked: block.size >= asked)
    assert all(len(segment["blocks"]) == 1 for segment in allocator.snapshot())
    allocator.empty_cache()
    assert allocator.reserved == 0


@settings(max_examples=150, deadline=None)
@given(ACTIONS, st.sampled_from([None, 20 * MIB, 64 * MIB]), st.sampled_from([None, 128 * MIB]))
def test_properties_of_segments_that_grow(actions: list[int], max_split: int | None, limit: int | None) -> None:
    allocator = ExpandableAllocator(limit=limit, max_split=max_split)
    perform(allocator, actions, check_blocks, lambda block, asked: block.size == rounded(asked))
    allocator.empty_cache()
    assert allocator.reserved == 0
    assert allocator.snapshot() == []


def test_a_segment_that_grows_serves_a_larger_request_with_what_is_free() -> None:
    lasting, lengths = 30 * MIB, (40, 50, 60, 70)
    for kind, reserved in ((CachingAllocator, 30 + sum(lengths)), (ExpandableAllocator, 100)):
        allocator = kind()
        allocator.allocate(lasting)
        for length in lengths:
            allocator.free(allocator.allocate(length * MIB))
        assert allocator.reserved == reserved * MIB
    (segment,) = allocator.snapshot()
    assert (segment["is_expandable"], len(segment["blocks"])) == (True, 2)


def test_pages_between_blocks_are_given_back_and_mapped_again() -> None:
    allocator = ExpandableAllocator()
    blocks = [allocator.allocate(40 * MIB) for _ in range(3)]
    allocator.free(blocks[1])
    allocator.empty_cache()
    assert (allocator.reserved, len(allocator.snapshot())) == (80 * MIB, 2)
    again = allocator.allocate(30 * MIB)
    assert again is not None
    assert again.address == blocks[0].address + 40 * MIB
    assert allocator.reserved == 120 * MIB


def test_small_blocks_have_pages_of_their_own() -> None:
    allocator = ExpandableAllocator()
    allocator.allocate(1)
    allocator.allocate(2 * MIB)
    assert [(one["segment_type"], one["total_size"]) for one in allocator.snapshot()] == [
        ("small", 2 * MIB),
        ("large", 20 * MIB),
    ]


def test_segments_grow_where_the_environment_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:64, expandable_segments:True")
    assert expands_by_environment()
    with track_memory("simulated"):
        kept = torch.ones(1, device="cuda")
        assert torch.cuda.memory_snapshot()[0]["is_expandable"]
        del kept
    monkeypatch.setenv("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:False")
    assert not expands_by_environment()


def test_cards() -> None:
    assert cards.card("A100 40GB") is cards.CARDS["a100-40gb"]
    assert cards.title(cards.card("a100-40gb")) == "an A100 40GB"
    assert cards.title(cards.card("t4")) == "a T4"
    assert cards.title(cards.card("RTX 4090")) == "an RTX 4090"
    assert cards.card("T4").workspace == 8_519_680
    assert cards.card("h100").workspace == 33_554_432
    assert not cards.card("v100-16gb").has_bfloat16
    with pytest.raises(ValueError, match="unknown card 'a1000'; it is one of t4, "):
        cards.card("a1000")


def test_cards_have_what_torch_told_of_them() -> None:
    told = {"t4": "14.74", "rtx4090": "23.65", "l40s": "44.52", "a30": "23.50", "rtx5080": "15.48", "b200": "178.36"}
    assert {name: f"{cards.CARDS[name].total / cards.GIB:.2f}" for name in told} == told
    assert cards.card("RTX 5090").total == 33_680_457_728
    assert cards.card("MI300X").workspace == 128 * MIB
    assert cards.title(cards.card("mi300x")) == "an MI300X"
    for card in cards.CARDS.values():
        assert not card.by_data_sheet
        assert 0.9 * card.data_sheet < card.total < card.data_sheet
        for figure in card.figures:  # they are of the same card: drivers and systems differ by little
            assert figure.nbytes == pytest.approx(card.total, rel=0.03)


@pytest.mark.parametrize("cents", range(1000, 1100, 7))
def test_two_decimals_are_told_again(cents: int) -> None:
    nbytes = cards.Figure("somewhere#1", cents / 100, "GiB").nbytes
    assert f"{nbytes / cards.GIB:.2f}" == f"{cents / 100:.2f}"
    assert f"{(nbytes - MIB) / cards.GIB:.2f}" != f"{cents / 100:.2f}"


def test_a_card_without_a_figure_says_so() -> None:
    card = cards.Card("a card", 16 * cards.GIB, (7, 5), 40)
    assert card.by_data_sheet
    assert card.total == 16 * cards.GIB
    assert not replace(card, memory=cards.GIB).by_data_sheet


def test_a_card_with_the_bytes_of_its_user() -> None:
    given = cards.card("t4", 22 * cards.GIB)
    assert (given.total, given.capability) == (22 * cards.GIB, (7, 5))
    assert cards.title(given) == "a T4 with 22.0 GiB"
    assert cards.title(cards.card(memory=22 * cards.GIB)) == "an A100 40GB with 22.0 GiB"
    with pytest.raises(ValueError, match=r"too few for a GPU; the least is 64\.0 MiB"):
        cards.card("t4", 22)
