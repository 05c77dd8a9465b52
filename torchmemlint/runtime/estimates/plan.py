"""What is to be estimated: a model, its inputs, and how it is trained. Knows nothing of torch."""

from __future__ import annotations

import re
from dataclasses import replace

from torchmemlint.immutable import immutable

DTYPES = {
    "fp32": "float32",
    "float": "float32",
    "fp16": "float16",
    "half": "float16",
    "bf16": "bfloat16",
    "fp64": "float64",
    "double": "float64",
    "long": "int64",
    "int": "int32",
}
"""Short names that people write for dtypes."""
KNOWN = {"float32", "float16", "bfloat16", "float64", "int64", "int32", "int16", "int8", "uint8", "bool"}
FLOATING = {"float32", "float16", "bfloat16", "float64"}
_INPUT = re.compile(r"(?:(?P<name>[A-Za-z_]\w*)=)?(?P<shape>\d+(?:x\d+)*)(?::(?P<dtype>\w+))?")


def dtype_name(written: str) -> str:
    """The name of a dtype in torch, however it is written (`bf16`, `torch.bfloat16`); raises ValueError for others."""
    short = written.lower().removeprefix("torch.")
    name = DTYPES.get(short, short)
    if name not in KNOWN:
        raise ValueError(f"unknown dtype {written!r}; it is one of {', '.join(sorted(KNOWN | DTYPES.keys()))}")
    return name


@immutable()
class Input:
    """A tensor that the model is given: its shape, batch first, its dtype (None: the model's), its keyword if any."""

    shape: tuple[int, ...]
    dtype: str | None = None
    name: str | None = None

    @staticmethod
    def parse(text: str) -> Input:
        """From `8x3x224x224`, `8x512:int64` or `input_ids=8x512:int64`; raises ValueError for anything else."""
        written = _INPUT.fullmatch(text.strip())
        if written is None:
            raise ValueError(f"not an input: {text!r} (write it like 8x3x224x224, 8x512:int64 or mask=8x512:bool)")
        dtype = None if written["dtype"] is None else dtype_name(written["dtype"])
        return Input(tuple(map(int, written["shape"].split("x"))), dtype, written["name"])

    def with_batch(self, batch: int) -> Input:
        """The same with another first dimension."""
        return replace(self, shape=(batch, *self.shape[1:]))

    def __str__(self) -> str:
        shape = "x".join(map(str, self.shape))
        return f"{self.name + '=' if self.name else ''}{shape}{':' + self.dtype if self.dtype else ''}"


@immutable()
class Plan:
    """A model and how it is trained. `amp` is autocast's dtype; `optimizer` None means no training, only inference."""

    inputs: tuple[Input, ...]
    optimizer: str | None = "adamw"
    dtype: str = "float32"
    amp: str | None = None
    checkpoint: bool = False
    accumulate: int = 1
    card: str | None = None
    memory: int | None = None  # the card's bytes, if not its own

    @property
    def training(self) -> bool:
        """Whether there is a backward."""
        return self.optimizer is not None

    @property
    def batch(self) -> int:
        """The first dimension of the first input."""
        return self.inputs[0].shape[0] if self.inputs else 1

    def with_batch(self, batch: int) -> Plan:
        """The same for another number of examples in a step: every input that has the batch first changes."""
        before = self.batch
        inputs = tuple(one.with_batch(batch) if one.shape[0] == before else one for one in self.inputs)
        return replace(self, inputs=inputs)
