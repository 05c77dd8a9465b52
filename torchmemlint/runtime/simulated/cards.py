"""The cards that can be simulated: what a program asks of them, and what their allocator may hand out."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20
GIB = 1 << 30

WORKSPACE = 4096 * 2048 + 16 * 8192
"""What cuBLAS takes for each handle and stream before Hopper: `:4096:2:16:8` KiB, 8,519,680 bytes."""
WORKSPACE_HOPPER = 4096 * 8192
"""The same from compute capability 9.0: 32 MiB."""


@dataclass(frozen=True, slots=True)
class Card:
    """A GPU. `total` is what the maker's data sheet says; the driver keeps some of it for itself."""

    name: str
    total: int
    capability: tuple[int, int]
    processors: int

    @property
    def workspace(self) -> int:
        """The bytes of a cuBLAS workspace."""
        return WORKSPACE_HOPPER if self.capability[0] == 9 else WORKSPACE

    @property
    def has_bfloat16(self) -> bool:
        """Whether the card computes in bfloat16 itself."""
        return self.capability >= (8, 0)


# Memory and multiprocessors: the makers' data sheets (nvidia.com, "Technical Specifications" of each product) and
# architecture papers. Compute capability: the table at developer.nvidia.com/cuda-gpus.
CARDS = {
    "t4": Card("Tesla T4", 16 * GIB, (7, 5), 40),
    "p100": Card("Tesla P100-PCIE-16GB", 16 * GIB, (6, 0), 56),
    "v100-16gb": Card("Tesla V100-SXM2-16GB", 16 * GIB, (7, 0), 80),
    "v100-32gb": Card("Tesla V100-SXM2-32GB", 32 * GIB, (7, 0), 80),
    "rtx2080ti": Card("NVIDIA GeForce RTX 2080 Ti", 11 * GIB, (7, 5), 68),
    "rtx3060": Card("NVIDIA GeForce RTX 3060", 12 * GIB, (8, 6), 28),
    "rtx3090": Card("NVIDIA GeForce RTX 3090", 24 * GIB, (8, 6), 82),
    "rtx4090": Card("NVIDIA GeForce RTX 4090", 24 * GIB, (8, 9), 128),
    "a10g": Card("NVIDIA A10G", 24 * GIB, (8, 6), 80),
    "a6000": Card("NVIDIA RTX A6000", 48 * GIB, (8, 6), 84),
    "l4": Card("NVIDIA L4", 24 * GIB, (8, 9), 58),
    "l40s": Card("NVIDIA L40S", 48 * GIB, (8, 9), 142),
    "a100-40gb": Card("NVIDIA A100-SXM4-40GB", 40 * GIB, (8, 0), 108),
    "a100-80gb": Card("NVIDIA A100-SXM4-80GB", 80 * GIB, (8, 0), 108),
    "h100": Card("NVIDIA H100 80GB HBM3", 80 * GIB, (9, 0), 132),
    "h200": Card("NVIDIA H200", 141 * 10**9, (9, 0), 132),
}

DEFAULT = "a100-40gb"


def card(name: str) -> Card:
    """The card of a name, however it is written (`A100 40GB`, `a100-40gb`, `T4`); raises ValueError for others."""
    wanted = "".join(letter for letter in name.lower() if letter.isalnum())
    for key, one in CARDS.items():
        if key.replace("-", "") == wanted:
            return one
    raise ValueError(f"unknown card {name!r}; it is one of {', '.join(CARDS)}")


def title(one: Card) -> str:
    """The card as a sentence names it: `an A100 40GB`."""
    name = short_name(one)
    return f"{'an' if name[0] in 'AHLR' else 'a'} {name}"  # as the letters are read


def short_name(one: Card) -> str:
    """The card as people call it: `A100 40GB`."""
    words = {"a100-40gb": "A100 40GB", "a100-80gb": "A100 80GB", "v100-16gb": "V100 16GB", "v100-32gb": "V100 32GB"}
    for key, known in CARDS.items():
        if known == one:
            return words.get(key, key.upper().replace("RTX", "RTX "))
    return one.name
