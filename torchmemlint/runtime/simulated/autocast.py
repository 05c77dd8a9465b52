"""Autocast as CUDA does it: its own lists of what runs in half precision and what in float32.

While `autocast("cuda")` is entered, the host's autocast is too, with the same type; kernels that are registered for
as long as the simulation lasts add to it what only CUDA's lists hold, for tensors of a simulated GPU. The lists are
those of `aten/src/ATen/autocast_mode.h`.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

from torchmemlint.runtime import internals
from torchmemlint.runtime.simulated.placement import Placement
from torchmemlint.runtime.simulated.replacing import Replacements
from torchmemlint.runtime.tracker import tensors_in

LOW = (torch.float16, torch.bfloat16)

_FLOAT32 = """acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan pow softplus layer_norm
native_layer_norm group_norm frobenius_norm nuclear_norm cosine_similarity poisson_nll_loss cosine_embedding_loss
nll_loss nll_loss2d hinge_embedding_loss kl_div l1_loss smooth_l1_loss huber_loss mse_loss margin_ranking_loss
multilabel_margin_loss soft_margin_loss triplet_margin_loss multi_margin_loss binary_cross_entropy_with_logits dist
pdist cdist renorm logsumexp upsample_nearest1d _upsample_nearest_exact1d upsample_nearest2d _upsample_nearest_exact2d
upsample_nearest3d _upsample_nearest_exact3d upsample_linear1d upsample_bilinear2d _upsample_bilinear2d_aa
upsample_trilinear3d upsample_bicubic2d _upsample_bicubic2d_aa""".split()
_FLOAT32_RESULT = "prod softmax log_softmax cumprod cumsum sum linalg_vector_norm linalg_matrix_norm norm".split()
_WIDEST = "addcdiv addcmul atan2 bilinear cross dot vdot grid_sampler index_put tensordot scatter_add".split()
_LOW = "addmv addr mv chain_matmul linalg_multi_dot lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell".split()

_UNCHANGED = """avg_pool3d max_pool3d adaptive_avg_pool3d adaptive_max_pool3d reflection_pad1d reflection_pad2d
replication_pad1d replication_pad2d replication_pad3d""".split()
"""What the host casts to float32 and CUDA leaves alone."""

Kernel = Callable[..., Any]
aten = torch.ops.aten


def converts_within(tensor: torch.Tensor, dtype: Any) -> bool:
    """Whether CUDA's softmax of a tensor gives another type without a copy in between."""
    return tensor.dtype == torch.float16 and dtype == torch.float32


class _OfThread(threading.local):
    """What the host's autocast was in one thread, before each that it has entered."""

    def __init__(self) -> None:
        self.before: list[tuple[bool, torch.dtype]] = []


class Autocast:
    """CUDA's autocast for the tensors of a simulated GPU."""

    def __init__(self, placement: Placement) -> None:
        self._placement = placement
        self._here = _OfThread()

    @property
    def _before(self) -> list[tuple[bool, torch.dtype]]:
        return self._here.before

    def put_in_place(self, replacements: Replacements) -> None:
        """Until the replacements are left, `autocast("cuda")` does something."""
        enter, leave = torch.autocast.__enter__, torch.autocast.__exit__

        def entered(context: Any) -> Any:
            result = enter(context)
            if context.device == "cuda":
                self._before.append(internals.host_autocast())
                internals.set_host_autocast(context._enabled, context.fast_dtype)
            return result

        def left(context: Any, *exception: Any) -> Any:
            if context.device == "cuda" and self._before:
                internals.set_host_autocast(*self._before.pop())
            return leave(context, *exception)

        replacements.replace(torch.autocast, "__enter__", entered)
        replacements.replace(torch.autocast, "__exit__", left)
        library = torch.library.Library("aten", "IMPL")
        replacements.callback(internals.unregister, library)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # two of the host's own kernels are replaced, which torch remarks on
            for name, overload, kernel in self._kernels():
                library.impl(f"{name}.{overload}" if overload != "default" else name, kernel, "AutocastCPU")

    def _kernels(self) -> Iterator[tuple[str, str, Kernel]]:
        for names, cast in (
            (_FLOAT32, self._to_float32),
            (_FLOAT32_RESULT, self._with_float32_result),
            (_WIDEST, self._to_widest),
            (_LOW, self._to_low),
        ):
            for name in names:
                for overload, operation in internals.overloads(name):
                    has_one = operation in (aten.softmax.int, aten.log_softmax.int)
                    if not has_one and not internals.has_host_autocast(operation):
                        yield name, overload, self._kernel(operation, cast)
        for name in _UNCHANGED:
            for overload, operation in internals.overloads(name):
                if internals.has_host_autocast(operation):
                    yield name, overload, self._unchanged(operation)
        yield "binary_cross_entropy", "default", self._refused(aten.binary_cross_entropy.default)
        yield "softmax", "int", self._softmax(aten.softmax.int, aten._softmax.default)
        yield "log_softmax", "int", self._softmax(aten.log_softmax.int, aten._log_softmax.default)
        cross_entropy = aten.cross_entropy_loss.default
        # The host would cast the logits first; CUDA casts within its parts, which need no copy for it.
        yield "cross_entropy_loss", "default", self._taken_apart(cross_entropy)

    def _kernel(self, operation: Any, cast: Callable[[Any, Any, Any], tuple[Any, Any]]) -> Kernel:
        def kernel(*arguments: Any, **keywords: Any) -> Any:
            with internals.below_host_autocast():
                if self._before and any(self._placement.on_gpu(one) for one in tensors_in(arguments)):
                    arguments, keywords = cast(operation, arguments, keywords)
                return operation(*arguments, **keywords)

        return kernel

    def _softmax(self, operation: Any, within: Any) -> Kernel:
        def kernel(tensor: torch.Tensor, dim: int, dtype: torch.dtype | None = None) -> Any:
            with internals.below_host_autocast():
                if self._before and tensor.dtype in LOW and self._placement.on_gpu(tensor):
                    dtype = dtype or torch.float32
                    if converts_within(tensor, dtype):
                        return within(tensor, dim, True)
                return operation(tensor, dim, dtype)

        return kernel

    def _unchanged(self, operation: Any) -> Kernel:
        def kernel(*arguments: Any, **keywords: Any) -> Any:
            with internals.below_host_autocast():
                if self._before and self._placement.on_gpu(arguments[0]):
                    try:
                        return operation(*arguments, **keywords)
                    except RuntimeError as error:
                        if "not implemented for" not in str(error):  # the host computes it in float32 only
                            raise
                arguments, keywords = self._to_float32(operation, arguments, keywords)
                return operation(*arguments, **keywords)

        return kernel

    def _refused(self, operation: Any) -> Kernel:
        def kernel(*arguments: Any, **keywords: Any) -> Any:
            if self._before and any(self._placement.on_gpu(one) for one in tensors_in(arguments)):
                raise RuntimeError(
                    "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.\n"
                    "Many models use a sigmoid layer right before the binary cross entropy layer.\n"
                    "In this case, combine the two layers using "
                    "torch.nn.functional.binary_cross_entropy_with_logits\nor torch.nn.BCEWithLogitsLoss."
                )
            with internals.below_host_autocast():
                arguments, keywords = self._to_float32(operation, arguments, keywords)
                return operation(*arguments, **keywords)

        return kernel

    def _taken_apart(self, operation: Any) -> Kernel:
        def kernel(*arguments: Any, **keywords: Any) -> Any:
            if self._before and self._placement.on_gpu(arguments[0]):
                return operation.decompose(*arguments, **keywords)
            with internals.below_host_autocast():
                arguments, keywords = self._to_float32(operation, arguments, keywords)
                return operation(*arguments, **keywords)

        return kernel

    # --- casts

    @staticmethod
    def _cast(value: Any, dtype: torch.dtype, which: tuple[torch.dtype, ...]) -> Any:
        if isinstance(value, torch.Tensor):
            return value.to(dtype) if value.dtype in which and value.dtype != dtype else value
        if isinstance(value, list | tuple):
            return type(value)(Autocast._cast(one, dtype, which) for one in value)
        return value

    def _to_float32(self, operation: Any, arguments: Any, keywords: Any) -> tuple[Any, Any]:
        cast = {name: self._cast(one, torch.float32, LOW) for name, one in keywords.items()}
        return self._cast(arguments, torch.float32, LOW), cast

    def _with_float32_result(self, operation: Any, arguments: Any, keywords: Any) -> tuple[Any, Any]:
        """Ask for a float32 result, where the program did not ask for a type itself."""
        names = [one.name for one in operation._schema.arguments]
        if arguments[0].dtype not in LOW:
            return arguments, keywords
        if "dtype" not in names:  # the first forms of `norm` have none
            return self._to_float32(operation, arguments, keywords)
        place = names.index("dtype")
        if (arguments[place] if place < len(arguments) else keywords.get("dtype")) is not None:
            return arguments, keywords
        if place < len(arguments):
            return (*arguments[:place], torch.float32, *arguments[place + 1 :]), keywords
        return arguments, {**keywords, "dtype": torch.float32}

    def _to_widest(self, operation: Any, arguments: Any, keywords: Any) -> tuple[Any, Any]:
        types = {one.dtype for one in tensors_in(arguments)}
        if not types.intersection(LOW):
            return arguments, keywords
        widest = torch.float32 if torch.float32 in types or types.issuperset(LOW) else next(iter(types & set(LOW)))
        return self._cast(arguments, widest, LOW), keywords

    def _to_low(self, operation: Any, arguments: Any, keywords: Any) -> tuple[Any, Any]:
        dtype = internals.host_autocast()[1]
        return self._cast(arguments, dtype, (torch.float32, *LOW)), keywords
