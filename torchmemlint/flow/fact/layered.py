"""Layered: what layers of torch make of a shape."""

from __future__ import annotations

from collections.abc import Callable

from torchmemlint.flow.fact.numbers import Numbers, argument
from torchmemlint.flow.fact.reading import Building
from torchmemlint.flow.fact.shapes import Shape, flattened
from torchmemlint.flow.ir import ops
from torchmemlint.flow.ir.places import NO_TEMP, Temp
from torchmemlint.knowledge import activations, operations

_ALTERING = frozenset({"GLU", "MultiheadAttention"})  # activations that give another shape
_SAME_KINDS = frozenset({"activation", "batchnorm", "dropout", "instancenorm", "normalization"})
_SAME = frozenset(name for name, one in operations.layers().items() if one.kind in _SAME_KINDS) - _ALTERING | {
    "Identity"
}
SAME_BY_FUNCTION = activations.FUNCTIONS | frozenset("dropout log_softmax sigmoid softmax tanh gelu softplus".split())
"""Functions and methods that give a tensor of the same shape."""
MEASURING = frozenset({"size", "dim", "numel"})

_CONV, _TRANSPOSED = ("Conv1d", "Conv2d", "Conv3d"), ("ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d")
_POOLING = frozenset(f"{kind}Pool{d}d" for kind in ("Avg", "Max") for d in (1, 2, 3))


def result(numbers: Numbers, made: Building, kind: str, given: Shape) -> Shape | None:
    """Return the shape of what a layer gives, of what it was built with and is given; None where it is not known."""
    short = kind.rpartition(".")[2]

    def option(position: int, name: str, default: int | None = None) -> int | None:
        temp = argument(made, position, name)
        return default if temp == NO_TEMP else _single(numbers, temp)

    if short in _SAME:
        return given
    if short == "Flatten":
        return flattened(given, 1)
    if given.more:
        return None
    if short == "Linear":
        return Shape((*given.sizes[:-1], option(1, "out_features")))
    if short == "Embedding":
        return Shape((*given.sizes, option(1, "embedding_dim")))
    if short in _CONV:
        window = (option(2, "kernel_size"), option(3, "stride", 1), option(4, "padding", 0), option(5, "dilation", 1))
        return _across(given, option(1, "out_channels"), _conv, window)
    if short in _TRANSPOSED:
        sizes = (
            option(2, "kernel_size"),
            option(3, "stride", 1),
            option(4, "padding", 0),
            option(5, "output_padding", 0),
        )
        return _across(given, option(1, "out_channels"), _transposed, sizes)
    if short in _POOLING and len(given.sizes) > 1:
        size = option(0, "kernel_size")
        return _across(given, given.sizes[1], _conv, (size, option(1, "stride", size), option(2, "padding", 0), 1))
    return None


def _single(numbers: Numbers, temp: Temp) -> int | None:
    """Return a number, also where it is said once for each axis."""
    made = numbers.flow.made.get(temp)
    if isinstance(made, ops.Make):
        found = {numbers.at_most(entry.temp) for entry in made.entries}
        return found.pop() if len(found) == 1 else None
    return numbers.at_most(temp)


def _across(
    given: Shape, channels: int | None, along: Callable[..., int], window: tuple[int | None, ...]
) -> Shape | None:
    """Return the shape that a window gives which runs along all axes but the first two."""
    known = [size for size in window if size is not None]
    if len(known) < len(window) or len(given.sizes) < 3:
        return None
    sizes = [along(size, *known) if size is not None else None for size in given.sizes[2:]]
    return Shape((given.sizes[0], channels, *sizes))


def _conv(size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    return max((size + 2 * padding - dilation * (kernel - 1) - 1) // max(stride, 1) + 1, 0)


def _transposed(size: int, kernel: int, stride: int, padding: int, more: int) -> int:
    return max((size - 1) * stride - 2 * padding + kernel + more, 0)
