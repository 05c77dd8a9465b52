"""Operations on the simulated GPU that are not computed: only the shapes of their results are.

A *hollow* tensor is an ordinary tensor of the host whose storage lies in an address range that no memory backs. So
parameters, gradients and optimizers are what they always are, and autograd is torch's own; but what the tensors would
hold is unknown, and a model many times the host's memory trains. Small tensors made of known values (counters,
scales, indices) are still computed, so that what depends on them goes its way; asked for an unknown value, a program
is told 1.0, 0 or False, and where a result's size depends on values it gets the largest it could be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import torch

from torchmemlint.runtime import internals
from torchmemlint.runtime.simulated.arena import arena
from torchmemlint.runtime.simulated.execution import ATTENTION, Tagged, attends_efficiently, sums_length
from torchmemlint.runtime.simulated.writing import aliases, written, written_returns
from torchmemlint.runtime.tracker import tensors_in

aten = torch.ops.aten
META = torch.device("meta")

KNOWN = 4096
"""Results up to so many elements are computed, if nothing that they are made of is unknown."""
BLANK = 1 << 18
"""Parameters of so many elements that the host makes are not filled, because they go to the GPU as they are."""
_VIEW = object()
"""Stands for the results of an operation that gives a view and does not say so (`_unsafe_view`)."""

_BY_KERNEL = frozenset(("aten::mkldnn_rnn_layer", "aten::_embedding_bag"))
"""Operations whose kernels make storages of sizes that torch's rules for shapes do not know."""

_LARGER = frozenset(("aten::mse_loss", "aten::smooth_l1_loss", "aten::binary_cross_entropy", "aten::col2im"))
"""Operations that shrink a tensor of their first argument's size to their result, in the same storage."""

_BY_VALUE = frozenset(("aten::_pack_padded_sequence",))
"""What takes lengths from tensors of the host, which are known, as is what it says of them after its first result."""

_UNTOUCHED = frozenset(("aten::_amp_foreach_non_finite_check_and_unscale_",))
"""What leaves the known among its arguments as they are: no gradient is infinite."""


def _set_unknown(tensor: torch.Tensor) -> None:
    storage = internals.storage_of(tensor)
    if storage is not None:
        storage.values_are_unknown = True  # type: ignore[attr-defined]
    for part in internals.parts_of(tensor) if storage is None else ():
        _set_unknown(part)


def is_unknown(tensor: torch.Tensor) -> bool:
    """Whether what a tensor holds is not known."""
    storage = internals.storage_of(tensor)
    if storage is None:
        return any(is_unknown(part) for part in internals.parts_of(tensor))
    return getattr(storage, "values_are_unknown", False)


class Hollow(Tagged):
    """The execution of `--fake`."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        internals.register_meta_kernels()
        self._arena = arena()
        self._results: dict[Any, Any] = {}
        self.computed: Counter[str] = Counter()
        """Operations that only torch's kernels can tell the results' shapes of, and that were computed for that."""
        self._sized: dict[str, Callable[..., Any]] = {
            "aten::nonzero": self._nonzero,
            "aten::masked_select": self._masked_select,
            "aten::index": self._index,
            "aten::_unique2": self._unique,
            "aten::unique_dim": self._unique,
            "aten::repeat_interleave": self._repeat_interleave,
            "aten::bincount": self._bincount,
            "aten::native_batch_norm": self._batch_norm,
            f"aten::{ATTENTION}": self._attention,
            "aten::_thnn_fused_gru_cell": self._gru_cell,
            "aten::_thnn_fused_gru_cell_backward": self._gru_cell_backward,
        }

    def compute(self, operation: Any, arguments: tuple[Any, ...], keywords: dict[str, Any], device: str | None) -> Any:
        """What the operation gives, in shape."""
        tensors = list(tensors_in((arguments, keywords)))
        if device not in self.placement.gpus:
            return self._on_host(operation, arguments, keywords, tensors)
        if operation.is_view or internals.is_inplace_view(operation):
            return self._renamed(operation, arguments, keywords)
        name = operation._schema.name
        unknown = any(is_unknown(tensor) for tensor in tensors)
        if name == "aten::_local_scalar_dense" and unknown:
            return _told(arguments[0].dtype)
        if name == "aten::equal" and unknown:
            return True
        if name in _BY_VALUE or name in _BY_KERNEL or any(tensor.layout is not torch.strided for tensor in tensors):
            return self._really(operation, arguments, keywords)
        if not unknown and sum(tensor.numel() for tensor in tensors) <= KNOWN:
            shaped = None if tensors else self._shaped(operation, arguments, keywords)
            if shaped is None or sum(one.numel() for one in tensors_in(shaped)) <= KNOWN:
                return super().compute(operation, arguments, keywords, device)
            return shaped
        if name == "aten::copy_" and not self.placement.on_gpu(arguments[0]):
            return arguments[0].zero_() if unknown else operation(*arguments, **keywords)
        if name == "aten::_fused_sdp_choice":
            return super().compute(operation, arguments, keywords, device)
        changed = written(operation, arguments, keywords)
        if name not in _UNTOUCHED:
            for tensor in changed:
                _set_unknown(tensor)
        if changed and len(operation._schema.returns) == len(written_returns(operation)) and "out" not in keywords:
            return aliases(operation, arguments, keywords)
        sized = self._sized.get(name)
        if sized is not None:
            found = sized(*arguments, **keywords)
            if found is not NotImplemented:
                return found
        return self._shaped(operation, arguments, keywords)

    # --- the host's tensors

    def _on_host(
        self, operation: Any, arguments: tuple[Any, ...], keywords: dict[str, Any], tensors: list[torch.Tensor]
    ) -> Any:
        if any(is_unknown(tensor) and self.placement.on_gpu(tensor) for tensor in tensors):
            results = self._shaped(operation, arguments, keywords)  # what comes back from the GPU
            return _mapped(results, lambda tensor: torch.zeros_like(tensor, device="cpu"))
        if tensors and getattr(internals.storage_of(tensors[0]), "is_blank", False):
            only_filled = len(tensors) == 1 and operation._schema.is_mutable and operation._schema.name.endswith("_")
            if only_filled and not internals.is_inplace_view(operation):
                return tensors[0]
        result = operation(*arguments, **keywords)
        if operation is aten.empty.memory_format and result.numel() >= BLANK and result.is_floating_point():
            result.untyped_storage().is_blank = True
        return result

    # --- shapes

    def _renamed(self, operation: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """A view of the same storage: torch's own kernel only looks at shapes."""
        if operation._schema.name != "aten::resize_":
            return operation(*arguments, **keywords)
        tensor, size = arguments[:2]
        strides = torch.empty(size, dtype=tensor.dtype, device=META).stride()
        needed = _extent(size, strides) * tensor.element_size()
        if needed <= tensor.untyped_storage().nbytes():
            return tensor.as_strided_(size, strides)
        return tensor.set_(self._storage(needed), 0, size, strides)

    def _storage(self, nbytes: int) -> torch.UntypedStorage:
        storage = self._arena.storage(nbytes)
        storage.values_are_unknown = True  # type: ignore[attr-defined]
        return storage

    def tensor(self, size: Any, stride: Any, dtype: torch.dtype, nbytes: int = 0) -> torch.Tensor:
        """A hollow tensor, in a storage of at least so many bytes."""
        nbytes = max(nbytes, _extent(size, stride) * torch.empty(0, dtype=dtype).element_size())
        if not nbytes:
            return torch.empty_strided(size, stride, dtype=dtype)
        return torch.empty(0, dtype=dtype).set_(self._storage(nbytes), 0, size, stride)

    def _shaped(self, operation: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Hollow results of the shapes that torch works out, which it does once for each set of shapes."""
        key = _key(operation, arguments, keywords)
        described = self._results.get(key) if key is not None else None
        if described is None:
            try:
                described = self._describe(operation, arguments, keywords)
            except (NotImplementedError, RuntimeError, TypeError) as error:
                if not internals.lacks_meta_kernel(error):
                    raise
                return self._really(operation, arguments, keywords)
            if key is not None:
                self._results[key] = described
        if described is _VIEW:
            return operation(*arguments, **keywords)
        if operation._schema.name in _LARGER and isinstance(described, _Shape):
            nbytes = arguments[0].numel() * arguments[0].element_size()
            return self.tensor(described.size, described.stride, described.dtype, nbytes)
        originals = list(tensors_in((arguments, keywords)))
        return _rebuilt(described, originals, self.tensor)

    def _really(self, operation: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """The operation computed after all, because only its kernel knows the results' shapes."""
        self.computed[str(operation)] += 1
        unknown = any(is_unknown(tensor) for tensor in tensors_in((arguments, keywords)))
        result = operation(*arguments, **keywords)
        for tensor in tensors_in(result[0] if operation._schema.name in _BY_VALUE else result):
            if unknown:
                _set_unknown(tensor)
        return result

    def _describe(self, operation: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        given: list[torch.Tensor] = []

        def meta(tensor: torch.Tensor) -> torch.Tensor:
            given.append(torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device=META))
            return given[-1]

        def plain(value: Any) -> Any:
            if isinstance(value, torch.device):
                return META
            return None if isinstance(value, torch.Generator) else value

        result = operation(*_mapped(arguments, meta, plain), **_mapped(keywords, meta, plain))
        storages = {internals.storage_key(one.untyped_storage()) for one in given}
        if any(
            all(one is not own for own in given) and internals.storage_key(one.untyped_storage()) in storages
            for one in tensors_in(result)
        ):
            return _VIEW
        return _mapped(result, lambda tensor: _Shape.of(tensor, given))

    # --- sizes that depend on values

    def _made(self, size: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        return self.tensor(size, torch.empty(size, dtype=dtype, device=META).stride(), dtype)

    def _nonzero(self, values: torch.Tensor) -> torch.Tensor:
        return self._made((values.numel(), values.dim()), torch.int64)

    def _masked_select(self, values: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        size = torch.broadcast_shapes(values.shape, mask.shape)
        return self._made((size.numel(),), values.dtype)

    def _index(self, values: torch.Tensor, indices: list[torch.Tensor | None]) -> Any:
        """With one mask among the indices: as if all of it were true."""
        masks = [one for one in indices if one is not None and one.dtype in (torch.bool, torch.uint8)]
        if not masks:
            return NotImplemented
        if len([one for one in indices if one is not None]) > 1:
            return NotImplemented
        (mask,) = masks
        place = next(number for number, one in enumerate(indices) if one is not None)
        shape = values.shape
        return self._made((*shape[:place], mask.numel(), *shape[place + mask.dim() :]), values.dtype)

    def _unique(self, values: torch.Tensor, *rest: Any, **keywords: Any) -> Any:
        count = values.numel()
        return tuple(self._made((count,), dtype) for dtype in (values.dtype, torch.int64, torch.int64))

    def _repeat_interleave(self, repeats: torch.Tensor, *rest: Any, output_size: int | None = None) -> torch.Tensor:
        return self._made((repeats.numel() if output_size is None else output_size,), repeats.dtype)

    def _batch_norm(self, values: torch.Tensor, *rest: Any) -> Any:
        """Outside of training, the kernels keep no statistics, though the rule for shapes says so."""
        training = rest[4]
        if training:
            return NotImplemented
        results = self._shaped(aten.native_batch_norm.default, (values, *rest), {})
        return results[0], self._made((0,), torch.float32), self._made((0,), torch.float32)

    def _attention(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *rest: Any, **more: Any) -> Any:
        """In CUDA's layout."""
        if not attends_efficiently(query):
            return NotImplemented
        batch, heads, length = query.shape[:3]
        output = self._made((batch, length, heads, value.shape[-1]), query.dtype)
        sums = self._made((batch, heads, sums_length(length)), torch.float32)
        return output.transpose(1, 2), sums[..., :length]

    def _gru_cell(self, inputs: torch.Tensor, hidden: torch.Tensor, state: torch.Tensor, *biases: Any) -> Any:
        rows, width = state.shape
        return self._made((rows, width), state.dtype), self._made((rows, 5 * width), state.dtype)

    def _gru_cell_backward(self, gradient: torch.Tensor, workspace: torch.Tensor, has_bias: bool) -> Any:
        rows, width = gradient.shape
        sizes: list[tuple[int, ...]] = [(rows, 3 * width), (rows, 3 * width), (rows, width)]
        sizes += [(3 * width,), (3 * width,)] if has_bias else []
        made = [self._made(size, workspace.dtype) for size in sizes]
        return (*made, *(None for _ in range(5 - len(made))))

    def _bincount(self, values: torch.Tensor, weights: Any = None, minlength: int = 0) -> torch.Tensor:
        return self._made((max(minlength, 1),), torch.int64 if weights is None else torch.float64)


class _Shape:
    """What a result looks like: a new tensor, or one of those that were given."""

    __slots__ = ("dtype", "given", "size", "stride")

    def __init__(self, size: Any, stride: Any, dtype: torch.dtype, given: int | None) -> None:
        self.size, self.stride, self.dtype, self.given = size, stride, dtype, given

    @classmethod
    def of(cls, tensor: torch.Tensor, given: list[torch.Tensor]) -> _Shape:
        same = next((number for number, one in enumerate(given) if one is tensor), None)
        return cls(tuple(tensor.size()), tuple(tensor.stride()), tensor.dtype, same)


def _rebuilt(described: Any, originals: list[torch.Tensor], make: Callable[..., torch.Tensor]) -> Any:
    if isinstance(described, _Shape):
        if described.given is None:
            return make(described.size, described.stride, described.dtype)
        original = originals[described.given]
        if tuple(original.size()) != described.size:  # an `out=` that was too small
            filled = make(described.size, described.stride, described.dtype)
            original.set_(filled.untyped_storage(), 0, described.size, described.stride)
        return original
    if isinstance(described, list | tuple):
        return type(described)(_rebuilt(one, originals, make) for one in described)
    return described


def _mapped(value: Any, of_tensor: Callable[[Any], Any], of_other: Callable[[Any], Any] | None = None) -> Any:
    if isinstance(value, torch.Tensor):
        return of_tensor(value)
    if isinstance(value, list | tuple) and not isinstance(value, torch.Size):
        return type(value)(_mapped(one, of_tensor, of_other) for one in value)
    if isinstance(value, dict):
        return {name: _mapped(one, of_tensor, of_other) for name, one in value.items()}
    return value if of_other is None else of_other(value)


def _key(operation: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """What the results' shapes depend on; None where that cannot be compared."""
    has_tensors = next(iter(tensors_in((arguments, keywords))), None) is not None

    def described(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.size(), value.stride(), value.dtype
        if isinstance(value, list | tuple):
            return tuple(described(one) for one in value)
        if isinstance(value, float) and has_tensors:
            return float
        return type(value), value

    try:
        key = operation, described(arguments), tuple((name, described(one)) for name, one in keywords.items())
        hash(key)
    except (TypeError, RuntimeError, NotImplementedError):
        return None
    return key


def _extent(size: Any, stride: Any) -> int:
    """The elements from the first to the last of a tensor."""
    if 0 in size:
        return 0
    last: int = sum((length - 1) * step for length, step in zip(size, stride, strict=True))
    return last + 1


def _told(dtype: torch.dtype) -> Any:
    """What a program is told that asks for an unknown value."""
    if dtype is torch.bool:
        return False
    if dtype.is_complex:
        return 1 + 0j
    return 1.0 if dtype.is_floating_point else 0
