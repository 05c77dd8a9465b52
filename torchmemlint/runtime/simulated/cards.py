"""The cards that can be simulated: what a program asks of them, and what their allocator may hand out.

A card has fewer bytes for torch than its data sheet says: the driver and error correction keep some. `CARDS` has what
torch itself told of each card in public, and where; the figure of the first place counts. Drivers differ by about 1%.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from torchmemlint.immutable import immutable
from torchmemlint.sizes import format_size

MIB: Final = 1 << 20
GIB: Final = 1 << 30
LEAST: Final = 64 * MIB
"""The smallest memory that a card can be given: less has no room for a workspace and a few segments."""

CONTEXT: Final = (287_047_680, 420_000_000)
"""Bytes that a CUDA context takes beside the allocator: 287,047,680 were measured with lazy loading of kernels
(github.com/pytorch/pytorch/pull/86509), "around 400 MB" is its maintainers' figure (issue 109888); more kernels in use,
and other cards and drivers, take more."""
WORKSPACE = 4096 * 2048 + 16 * 8192
"""What cuBLAS takes for each handle and stream: `:4096:2:16:8` KiB, 8,519,680 bytes."""
WORKSPACE_HOPPER = 4096 * 8192
"""The same on compute capability 9.0: 32 MiB."""
WORKSPACE_MI300 = 128 * MIB
"""The same of hipBLAS on gfx94 (`parseChosenWorkspaceSize` in aten/src/ATen/cuda/CublasHandlePool.cpp)."""


@immutable()
class Figure:
    """What torch told of a card's bytes, and where: `owner/name#number`, or `owner/name: path` of a file.

    `GiB` are the two decimals of its messages ("a total capacity of 14.74 GiB"), `MiB` those of
    `print(torch.cuda.get_device_properties(0))`, which cuts; integers are exact.
    """

    where: str
    told: float | int
    unit: str = "bytes"

    @property
    def nbytes(self) -> int:
        """The fewest whole MiB that are shown so, in bytes; exact bytes as they are."""
        if self.unit == "bytes":
            return int(self.told)
        if self.unit == "MiB":
            return int(self.told) * MIB
        half_hundredths = 2 * round(self.told * 100) - 1  # where rounding to two decimals begins to give it
        return (half_hundredths * (GIB // MIB) // 200 + 1) * MIB


@immutable()
class Card:
    """A GPU. `data_sheet` is what its maker says, `figures` what torch has of it, `memory` what a user says."""

    name: str
    data_sheet: int
    capability: tuple[int, int]
    processors: int
    figures: tuple[Figure, ...] = ()
    memory: int | None = None

    @property
    def total(self) -> int:
        """The bytes that torch has: `get_device_properties().total_memory`, and the second of `mem_get_info()`."""
        if self.memory is not None:
            return self.memory
        return self.figures[0].nbytes if self.figures else self.data_sheet

    @property
    def by_data_sheet(self) -> bool:
        """Whether `total` is more than torch would have, because nothing better than the data sheet is known."""
        return self.memory is None and not self.figures

    @property
    def workspace(self) -> int:
        """The bytes of a cuBLAS workspace."""
        sizes = {(9, 0): WORKSPACE_HOPPER, (9, 4): WORKSPACE_MI300}
        return sizes.get(self.capability, WORKSPACE)

    @property
    def threads(self) -> int:
        """The most threads on a multiprocessor ("Technical Specifications per Compute Capability" of CUDA's guide)."""
        major = self.capability[0]
        if self.capability in ((6, 0), (7, 0), (8, 0)) or major in (9, 10):
            return 2048
        return 1024 if self.capability == (7, 5) else 1536

    @property
    def warp(self) -> int:
        """The threads that run in step."""
        return 64 if self.name.startswith("AMD") else 32

    @property
    def has_bfloat16(self) -> bool:
        """Whether the card computes in bfloat16 itself."""
        return self.capability >= (8, 0)


def _exactly(where: str, nbytes: int) -> Figure:
    return Figure(where, nbytes)


def _mib(where: str, told: int) -> Figure:
    return Figure(where, told, "MiB")


def _gib(where: str, told: float) -> Figure:
    return Figure(where, told, "GiB")


# Multiprocessors and the data sheets' bytes: nvidia.com and amd.com, "Technical Specifications" of each product.
# Compute capability: the table at developer.nvidia.com/cuda-gpus.
_QUERIES = "thamada/nvidia-smi: gls/"  # outputs of CUDA's deviceQuery, which reads what torch reads
CARDS = {
    "t4": Card(
        "Tesla T4",
        16 * GIB,
        (7, 5),
        40,
        (_gib("zai-org/CogVideo#741", 14.74), _gib("Zheng-Chong/CatVTON#133", 14.56)),
    ),
    "p100": Card("Tesla P100-PCIE-16GB", 16 * GIB, (6, 0), 56, (_gib("rmokady/CLIP_prefix_caption#7", 15.90),)),
    "v100-16gb": Card("Tesla V100-SXM2-16GB", 16 * GIB, (7, 0), 80, (_gib("kchengiva/Shift-GCN#34", 15.78),)),
    "v100-32gb": Card("Tesla V100-SXM2-32GB", 32 * GIB, (7, 0), 80, (_gib("liucongg/ChatGLM-Finetuning#73", 31.74),)),
    "rtx2080ti": Card(
        "NVIDIA GeForce RTX 2080 Ti",
        11 * GIB,
        (7, 5),
        68,
        (_gib("JDAI-CV/image-captioning#11", 10.76), _gib("ispc-lab/TMA#5", 10.76)),
    ),
    "rtx3060": Card(
        "NVIDIA GeForce RTX 3060",
        12 * GIB,
        (8, 6),
        28,
        (_gib("TencentARC/PhotoMaker#47", 11.76), _gib("Kunhao-Liu/StyleGaussian#12", 11.75)),
    ),
    "rtx3090": Card(
        "NVIDIA GeForce RTX 3090",
        24 * GIB,
        (8, 6),
        82,
        (
            _exactly(f"{_QUERIES}RTX3090_deviceQuery.py", 25_327_697_920),
            _exactly("Jumperkables/cuda-benchmarking: 00_deviceQuery/README.md", 25_286_672_384),
            _gib("GaoLii/DSP#10", 23.70),
        ),
    ),
    "rtx4070": Card(
        "NVIDIA GeForce RTX 4070",
        12 * GIB,
        (8, 9),
        46,
        (_exactly("Lightricks/ComfyUI-LTXVideo#337 (Windows)", 12_877_955_072),),
    ),
    "rtx4080": Card(
        "NVIDIA GeForce RTX 4080",
        16 * GIB,
        (8, 9),
        76,
        (
            _mib(
                "brainglobe/brainglobe.github.io: docs/source/documentation/cellfinder/troubleshooting/speed-up.md",
                16_049,
            ),
            _mib("ultralytics/ultralytics#4215 (Windows)", 16_376),
        ),
    ),
    "rtx4090": Card(
        "NVIDIA GeForce RTX 4090",
        24 * GIB,
        (8, 9),
        128,
        (
            _gib("MotrixLab/AiOS#29", 23.65),
            _exactly(f"{_QUERIES}RTX4090_deviceQuery.py", 25_386_352_640),
            _gib("ali-vilab/VGen#104", 23.64),
            _exactly("Comfy-Org/ComfyUI#7063", 25_262_096_384),
        ),
    ),
    "rtx5080": Card(
        "NVIDIA GeForce RTX 5080", 16 * GIB, (12, 0), 84, (_gib("Tencent-Hunyuan/Hunyuan3D-2#238", 15.48),)
    ),
    "rtx5090": Card(
        "NVIDIA GeForce RTX 5090",
        32 * GIB,
        (12, 0),
        170,
        (
            _exactly("NVIDIA/nccl#1637", 33_680_457_728),
            _exactly("aikitoria/open-gpu-kernel-modules#1", 33_677_180_928),
            _gib("Wan-Video/Wan2.1#465", 31.37),
        ),
    ),
    "a10": Card(
        "NVIDIA A10",
        24 * GIB,
        (8, 6),
        72,
        (_exactly("aalanwyr/face2cuda: step2cuda/README.md", 23_609_475_072),),
    ),
    "a10g": Card(
        "NVIDIA A10G",
        24 * GIB,
        (8, 6),
        80,
        (_mib("meta-pytorch/torchcodec: 0.16.0/generated_examples/decoding/basic_cuda_example.md", 22_587),),
    ),
    "a30": Card(
        "NVIDIA A30",
        24 * GIB,
        (8, 0),
        56,
        (_gib("LHRLAB/ChatKBQA#2", 23.50), _gib("google/RB-Modulation#5", 23.53)),
    ),
    "a40": Card("NVIDIA A40", 48 * GIB, (8, 6), 84, (_exactly(f"{_QUERIES}A40x10_deviceQuery.py", 47_608_692_736),)),
    "a6000": Card("NVIDIA RTX A6000", 48 * GIB, (8, 6), 84, (_mib("ultralytics/ultralytics#19084", 48_670),)),
    "l4": Card(
        "NVIDIA L4",
        24 * GIB,
        (8, 9),
        58,
        (
            _exactly(f"{_QUERIES}L4_deviceQuery.py", 23_570_219_008),
            _exactly("bottlerocket-os/bottlerocket-kernel-kit#139", 23_583_784_960),
        ),
    ),
    "l40s": Card(
        "NVIDIA L40S",
        48 * GIB,
        (8, 9),
        142,
        (
            _exactly(f"{_QUERIES}L40S_deviceQuery.py", 47_803_596_800),
            _gib("Wan-Video/Wan2.1#205", 44.53),
            _gib("allebee/jevk5: docs/demo/README.md", 44.4),
        ),
    ),
    "a100-40gb": Card(
        "NVIDIA A100-SXM4-40GB",
        40 * GIB,
        (8, 0),
        108,
        (_exactly("bottlerocket-os/bottlerocket#3873", 42_298_834_944), _gib("TianheWu/CoSeR#10", 39.50)),
    ),
    "a100-80gb": Card(
        "NVIDIA A100-SXM4-80GB",
        80 * GIB,
        (8, 0),
        108,
        (_exactly(f"{_QUERIES}A100SXMx4_deviceQuery.py", 85_100_068_864), _gib("HiDream-ai/VAREdit#6", 79.25)),
    ),
    "h100": Card(
        "NVIDIA H100 80GB HBM3",
        80 * GIB,
        (9, 0),
        132,
        (_exactly(f"{_QUERIES}H100SXMx8_deviceQuery.py", 85_045_477_376),),
    ),
    "h200": Card(
        "NVIDIA H200",
        141 * GIB,
        (9, 0),
        132,
        (_mib("ai-bot-pro/achatbot: deploy/modal/src/llm/vllm/vlm/skywork_r1v.py", 143_156),),
    ),
    "b200": Card(
        "NVIDIA B200",
        180 * GIB,
        (10, 0),
        148,
        (
            _mib("ai-bot-pro/achatbot: deploy/modal/src/llm/vllm/vlm/skywork_r1v.py", 182_642),
            _gib("pytorch/ao#4002", 178.35),
        ),
    ),
    "mi300x": Card("AMD Instinct MI300X", 192 * GIB, (9, 4), 304, (_mib("ROCm/ROCm#4203", 196_592),)),
}

DEFAULT = "a100-40gb"


def card(name: str | None = None, memory: int | None = None) -> Card:
    """The card of a name, however it is written (`A100 40GB`, `a100-40gb`, `T4`), by default an A100 40GB.

    With `memory` it has so many bytes instead of its own. Raises ValueError for other names, and for too few bytes.
    """
    wanted = "".join(letter for letter in (name or DEFAULT).lower() if letter.isalnum())
    found = next((one for key, one in CARDS.items() if key.replace("-", "") == wanted), None)
    if found is None:
        raise ValueError(f"unknown card {name!r}; it is one of {', '.join(CARDS)}")
    if memory is None:
        return found
    if memory < LEAST:
        raise ValueError(f"{format_size(memory)} are too few for a GPU; the least is {format_size(LEAST)}")
    return replace(found, memory=memory)


def title(one: Card) -> str:
    """The card as a sentence names it: `an A100 40GB`, `an A100 40GB with 22.0 GiB`."""
    name = short_name(one)
    return f"{'an' if name[0] in 'AHLMR' else 'a'} {name}"  # as the letters are read


def short_name(one: Card) -> str:
    """The card as people call it: `A100 40GB`; with the bytes that a user gave it."""
    words = {"a100-40gb": "A100 40GB", "a100-80gb": "A100 80GB", "v100-16gb": "V100 16GB", "v100-32gb": "V100 32GB"}
    keys = [key for key, known in CARDS.items() if known.name == one.name]
    name = words.get(keys[0], keys[0].upper().replace("RTX", "RTX ")) if keys else one.name
    return name if one.memory is None else f"{name} with {format_size(one.memory)}"
