"""Derive from an installed torch what its operations do to graphs and memory; writes the data file of `knowledge/`.

    pip install torch expecttest numpy pyyaml
    python tools/torch_knowledge.py            # write torchmemlint/knowledge/torch.json
    python tools/torch_knowledge.py --check    # exit 1 if this torch says otherwise
    python tools/torch_knowledge.py --coverage # what is covered, and the names of what is not

Every operation is run on the CPU: on the samples of torch's own test databases (`op_db`, `module_db`) where they have
it, on a few plausible arguments otherwise. What autograd keeps is seen by `torch.autograd.graph.saved_tensors_hooks`,
and told apart by the storage that it lies in. Results of all samples are united: "may carry", "may save"; what only
some samples save is `sometimes` saved. How much is saved beside the inputs, which are there anyway, is said in bytes
relative to those of the first input (`bytes`: one number, or the least and the most of any sample). Layers with an
in-place form are measured between two convolutions, with and without it.

What no CPU can run is read off torch's derivative formulas (`torch_formulas.py`; such lines say `formula`). What an
earlier release had and this one has not keeps its line, which says `until` which release it was seen.

torch's packages for Linux want GPU libraries of some gigabytes, which this does not need: empty libraries of the same
names that answer "no device" do, and so does a CPU build.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import io
import itertools
import json
import logging
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch_formulas
from torch import nn
from torch.utils._pytree import tree_leaves

DATA = Path(__file__).resolve().parent.parent / "torchmemlint" / "knowledge" / "torch.json"
NAMESPACES = {  # how names of the test database begin, and where the functions are
    "nn.functional.": "torch.nn.functional",
    "linalg.": "torch.linalg",
    "fft.": "torch.fft",
    "special.": "torch.special",
    "": "torch",
}
MOST_SAMPLES = 12
_NOT_TRIED = frozenset(  # they do not compute: they touch devices or other threads' memory, or raise
    "backward module_load record_stream reinforce".split()
)


@dataclass(slots=True)
class Seen:
    """What an operation was seen to do, over all its samples."""

    graph: list[bool] = field(default_factory=list)  # of each tensor in the result: may it carry a graph?
    tensors: set[str] = field(default_factory=set)  # "one", "several", "none": tensors in the result
    discrete: bool = True  # is every tensor in the result of integers or booleans?
    saves: set[str] = field(default_factory=set)  # by any sample
    always: set[str] | None = None  # by every one of more than a number
    view: bool = False
    from_tensors: bool = False  # was a tensor among the arguments?
    unary: bool = True  # was it never more than one?
    runs: int = 0
    sizes: dict[str, list[float]] = field(
        default_factory=dict
    )  # of what is saved beside inputs: bytes per input's byte


def observe(seen: Seen, call: Callable[..., Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
    """Run the call once and note what it did. Raises whatever the call raises."""
    given = [leaf for leaf in tree_leaves((arguments, keywords)) if isinstance(leaf, torch.Tensor)]
    roles = {_storage(tensor): "operand" for tensor in given[1:]}
    roles |= {_storage(tensor): "input" for tensor in given[:1]}
    kept: list[torch.Tensor] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: (kept.append(tensor), tensor)[1], lambda held: held):
        result = call(*arguments, **keywords)
    tensors = [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]
    seen.runs += 1
    wraps = any(isinstance(one, bytearray) or hasattr(one, "__array_interface__") for one in arguments) and not given
    seen.from_tensors |= bool(given) or wraps
    seen.unary &= len(given) < 2 and not wraps
    seen.tensors.add("one" if isinstance(result, torch.Tensor) else "several" if tensors else "none")
    seen.discrete &= all(not (t.is_floating_point() or t.is_complex()) for t in tensors)
    graph = [tensor.requires_grad for tensor in tensors]
    seen.graph = [a or b for a, b in itertools.zip_longest(seen.graph, graph, fillvalue=False)]
    for index, tensor in enumerate(tensors):
        if _storage(tensor) in roles and _storage(tensor) != 0:
            seen.view = True
        roles.setdefault(_storage(tensor), "output" if index == 0 or tensor.requires_grad else "other")
    own = {_storage(tensor) for tensor in call.parameters()} if isinstance(call, nn.Module) else set()
    saved: dict[str, dict[int, int]] = {}  # bytes by role and storage
    for tensor in kept:
        if tensor.numel() > 1:  # single numbers cost nothing
            role = roles.get(_storage(tensor)) or ("mask" if _is_small(tensor) else "other")
            sizes = saved.setdefault(role, {})
            sizes[_storage(tensor)] = max(sizes.get(_storage(tensor), 0), tensor.numel() * tensor.element_size())
    seen.saves |= saved.keys()
    if given and given[0].numel() > 1 and any(graph):
        whole = given[0].numel() * given[0].element_size()
        for role, sizes in saved.items():
            if role not in ("input", "operand"):
                made = sum(size for storage, size in sizes.items() if storage not in own)
                seen.sizes.setdefault(role, []).append(made / whole)
    if any(graph) and tensors[0].numel() > 1 and (not given or given[0].numel() > 1):
        seen.always = set(saved) if seen.always is None else seen.always & saved.keys()
    seen.view |= _gives_back(call, given, result, arguments, keywords)


def _gives_back(
    call: Callable[..., Any],
    given: list[torch.Tensor],
    result: Any,
    arguments: tuple[Any, ...],
    keywords: dict[str, Any],
) -> bool:
    """Does it return its input as it is where there is nothing to do: in another type, or out of training?"""
    if not (given and isinstance(result, torch.Tensor) and arguments and arguments[0] is given[0]):
        return False
    tries = []
    if result.dtype != given[0].dtype:
        tries.append((result.dtype, keywords))
    if "training" in _parameters(call):
        tries.append((given[0].dtype, keywords | {"training": False}))
    for dtype, options in tries:
        with contextlib.suppress(Exception):
            first = given[0].detach().to(dtype)
            again = call(first, *arguments[1:], **options)
            if isinstance(again, torch.Tensor) and _storage(again) == _storage(first) != 0:
                return True
    return False


def _parameters(call: Callable[..., Any]) -> list[str]:
    """Names of its parameters; none where that cannot be told."""
    try:
        return list(inspect.signature(inspect.unwrap(call)).parameters)
    except (TypeError, ValueError):  # built in
        return []


def _storage(tensor: torch.Tensor) -> int:
    try:
        return tensor.untyped_storage().data_ptr()
    except RuntimeError:  # sparse layouts have none
        return id(tensor)


def _is_small(tensor: torch.Tensor) -> bool:
    return tensor.dtype in (torch.bool, torch.uint8, torch.int8)


def entry(seen: Seen, **more: Any) -> dict[str, Any] | None:
    """The line of the data file; None where nothing was seen."""
    if not seen.runs:
        return None
    found: dict[str, Any] = {}
    if seen.tensors == {"none"}:
        found["result"] = "value"
    else:
        results = {frozenset({"one"}): "tensor", frozenset({"several"}): "tensors"}
        found["result"] = results.get(frozenset(seen.tensors), "varies")
        found["graph"] = seen.graph[0] if len(set(seen.graph)) == 1 else seen.graph
        if not seen.from_tensors:
            found["factory"] = True
        elif seen.unary:
            found["unary"] = True
        if seen.discrete:
            found["discrete"] = True
        if seen.view:
            found["view"] = True
        if any(seen.graph):
            found["saves"] = sorted(seen.saves)
            if seen.saves - (seen.always or set()):
                found["sometimes"] = sorted(seen.saves - (seen.always or set()))
            sizes = {role: _size(seen.sizes[role]) for role in sorted(seen.sizes) if any(seen.sizes[role])}
            if sizes:
                found["bytes"] = sizes
    found.update((name, value) for name, value in more.items() if value is not None and value is not False)
    return found


def _size(ratios: list[float]) -> float | list[float]:
    """One number, or the least and the most."""
    least, most = (float(f"{ratio:.3g}") for ratio in (min(ratios), max(ratios)))
    return least if least == most else [least, most]


# -- functions and methods that the test database has --------------------------------------------------------------


def from_database() -> tuple[dict[str, Seen], dict[str, Seen], dict[str, Seen]]:
    """Functions by qualified name, methods, and the in-place forms of methods by the names without underscore."""
    from torch.testing._internal.common_methods_invocations import op_db

    functions: dict[str, Seen] = {}
    methods: dict[str, Seen] = {}
    inplace: dict[str, Seen] = {}
    for info in op_db:
        for named in (info, *info.aliases):  # their `op` takes the samples, whose order of arguments may be its own
            qualified = _qualified(named.name)
            if qualified is not None:
                _observe_samples(functions.setdefault(qualified, Seen()), named.op, info)
            short = named.name.rpartition(".")[2]
            if named.method_variant is not None and "." not in named.name and hasattr(torch.Tensor, short):
                _observe_samples(methods.setdefault(short, Seen()), named.method_variant, info)
                if named.inplace_variant is not None:
                    _observe_samples(inplace.setdefault(short, Seen()), named.inplace_variant, info, cloned=True)
    return functions, methods, inplace


def _qualified(name: str) -> str | None:
    for prefix, module in NAMESPACES.items():
        if name.startswith(prefix):
            qualified = f"{module}.{name.removeprefix(prefix)}"
            return qualified if callable(_found(qualified)) else None
    return None


def _found(qualified: str) -> Any:
    value: Any = torch
    for part in qualified.split(".")[1:]:
        value = getattr(value, part, None)
    return value


def _observe_samples(seen: Seen, call: Callable[..., Any], info: Any, *, cloned: bool = False) -> None:
    with _quiet():
        for wants_grad in (True, False) if not info.supports_autograd else (True,):
            try:
                samples = list(itertools.islice(info.sample_inputs("cpu", torch.float32, wants_grad), MOST_SAMPLES))
            except Exception:  # noqa: BLE001 - the database has no such sample
                continue
            for sample in samples:
                if sample.kwargs.get("requires_grad"):  # a leaf that is asked for is no graph that the operation makes
                    continue
                first = sample.input.clone() if cloned and isinstance(sample.input, torch.Tensor) else sample.input
                with contextlib.suppress(Exception):
                    observe(seen, call, (first, *sample.args), sample.kwargs)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


# -- what the database has not: plausible arguments ------------------------------------------------------------------


def _tensor(*shape: int) -> torch.Tensor:
    return torch.rand(*shape, requires_grad=True) * 0.5 + 0.3


def plausible(method: bool) -> Iterable[tuple[Any, ...]]:
    """Arguments that operations are tried with: a matrix, alone and with what often follows."""
    others: list[Callable[[], tuple[Any, ...]]] = [
        tuple,
        lambda: (_tensor(4, 4),),
        lambda: (1,),
        lambda: (0.5,),
        lambda: (0, 1),
        lambda: (2, 8),
        lambda: (torch.float64,),
        lambda: ("cpu",),
        lambda: (True,),
        lambda: (_tensor(4, 4), _tensor(4, 4)),
        lambda: (0, torch.tensor([0, 1])),
        lambda: (0, torch.tensor([0, 1]), _tensor(2, 4)),
    ]
    for other in others:
        yield (_tensor(4, 4), *other())
        if not method:
            yield other()
    whole = torch.tensor([3, 5])
    yield from ((_tensor(1),), (whole,), (whole, whole), (whole, 1), (_tensor(2, 4, 4, 4), 2), (whole > 4, whole > 4))
    yield (_tensor(4, 4), 0, torch.tensor([[0, 1]]), _tensor(4, 4))
    if not method:
        yield ([_tensor(4, 4), _tensor(4, 4)],)


def _image(channels: int = 4, size: int = 8) -> torch.Tensor:
    return _tensor(2, channels, size, size)


def _leaf() -> torch.Tensor:
    return torch.rand(4, 4, requires_grad=True)


def _lengths() -> torch.Tensor:
    return torch.tensor([3, 2])


def _quantized(tensor: torch.Tensor) -> torch.Tensor:
    return torch.quantize_per_tensor(tensor, 0.1, 0, torch.quint8)


def _weights(gates: int) -> list[torch.Tensor]:
    return [_tensor(gates * 6, 4), _tensor(gates * 6, 6), _tensor(gates * 6), _tensor(gates * 6)]


def _recurrent(gates: int) -> tuple[Any, ...]:
    """The arguments of recurrent functions that follow the input and the state."""
    return _weights(gates), True, 1, 0.0, True, False, False


# Arguments of functions of `torch` and `torch.nn.functional` that take none of the plausible ones.
ARGUMENTS: dict[str, Callable[[], tuple[Any, ...]]] = {
    **dict.fromkeys(
        "alpha_dropout alpha_dropout_ dropout dropout_ feature_alpha_dropout feature_alpha_dropout_ feature_dropout "
        "feature_dropout_ native_dropout".split(),
        lambda: (_image(), 0.5, True),
    ),
    **dict.fromkeys(("affine_grid", "affine_grid_generator"), lambda: (_tensor(2, 2, 3), [2, 3, 4, 4], False)),
    "as_tensor": lambda: (_image(),),
    "asarray": lambda: (_image(),),
    "batch_norm": lambda: (_image(), _tensor(4), _tensor(4), None, None, True, 0.1, 1e-5, False),
    "bilinear": lambda: (_tensor(4, 6), _tensor(4, 6), _tensor(3, 6, 6), None),
    "conv_tbc": lambda: (_tensor(5, 2, 4), _tensor(3, 4, 6), _tensor(6)),
    "cosine_embedding_loss": lambda: (_tensor(4, 6), _tensor(4, 6), torch.ones(4)),
    "embedding": lambda: (_tensor(6, 4), torch.tensor([0, 2])),
    "embedding_bag": lambda: (_tensor(6, 4), torch.tensor([0, 2, 3]), torch.tensor([0, 2])),
    "fake_quantize_per_tensor_affine": lambda: (_image(), 0.1, 0, 0, 255),
    "fold": lambda: (_tensor(2, 16, 16), (5, 5), (2, 2)),
    "fractional_max_pool2d_with_indices": lambda: (_image(), 2, (4, 4)),
    "fractional_max_pool3d_with_indices": lambda: (_tensor(2, 2, 6, 6, 6), 2, (3, 3, 3)),
    "grid_sampler": lambda: (_image(), _tensor(2, 4, 4, 2), 0, 0, False),
    "gru_cell": lambda: (_tensor(4, 6), _tensor(4, 5), _tensor(15, 6), _tensor(15, 5)),
    "imag": lambda: (torch.view_as_complex(_tensor(4, 2)),),
    "instance_norm": lambda: (_image(), None, None, None, None, True, 0.1, 1e-5, False),
    "istft": lambda: (torch.view_as_complex(_tensor(9, 8, 2)), 16, None, None, torch.ones(16)),
    "lp_pool1d": lambda: (_tensor(2, 4, 8), 2.0, 2),
    "lp_pool2d": lambda: (_image(), 2.0, 2),
    "lp_pool3d": lambda: (_tensor(2, 2, 6, 6, 6), 2.0, 2),
    "lstm_cell": lambda: (_tensor(4, 6), (_tensor(4, 5), _tensor(4, 5)), _tensor(20, 6), _tensor(20, 5)),
    "poisson_nll_loss": lambda: (_tensor(4, 4), torch.rand(4, 4), True, False, 1e-8, 1),
    "prelu": lambda: (_image(), _tensor(1)),
    "promote_types": lambda: (torch.float32, torch.float64),
    "can_cast": lambda: (torch.float32, torch.float64),
    "result_type": lambda: (_tensor(2), 1.0),
    **dict.fromkeys(
        ("rnn_relu_cell", "rnn_tanh_cell"), lambda: (_tensor(4, 6), _tensor(4, 5), _tensor(5, 6), _tensor(5, 5))
    ),
    **dict.fromkeys(("tril_indices", "triu_indices"), lambda: (4, 4)),
    **dict.fromkeys(("unsafe_split_with_sizes",), lambda: (_tensor(4, 4), [2, 2])),
    "upsample": lambda: (_image(), None, 2),
    "vander": lambda: (_tensor(4),),
    **dict.fromkeys(("view_as_real", "view_as_real_copy"), lambda: (torch.view_as_complex(_tensor(4, 2)),)),
    "convolution": lambda: (_image(), _tensor(3, 4, 3, 3), None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1),
    "ctc_loss": lambda: (_tensor(6, 2, 5).log_softmax(-1), torch.ones(2, 3).long(), torch.tensor([6, 6]), _lengths()),
    "embedding_renorm_": lambda: (_tensor(6, 4), torch.tensor([0, 2]), 1.0, 2.0),
    "fake_quantize_per_channel_affine": lambda: (_image(), torch.ones(4), torch.zeros(4), 1, 0, 255),
    **dict.fromkeys(("fftfreq", "rfftfreq"), lambda: (8,)),
    "from_dlpack": lambda: (torch.ones(4),),
    "grouped_mm": lambda: (_tensor(2, 16, 16).bfloat16(), _tensor(2, 16, 16).bfloat16()),
    **{
        name: lambda gates=gates: (_tensor(5, 2, 4), _tensor(1, 2, 6), *_recurrent(gates))
        for name, gates in (("gru", 3), ("rnn_relu", 1), ("rnn_tanh", 1))
    },
    **dict.fromkeys(
        "get_autocast_ipu_dtype get_autocast_xla_dtype is_autocast_ipu_enabled is_autocast_xla_enabled "
        "set_printoptions".split(),
        tuple,
    ),
    "from_numpy": lambda: (torch.ones(4).numpy(),),
    "frombuffer": lambda: (bytearray(16),),
    "fused_moving_avg_obs_fake_quant": lambda: (
        *(_image(), torch.ones(1).long(), torch.ones(1).long()),
        *(torch.zeros(1), torch.ones(1), torch.ones(1), torch.zeros(1).int()),
        *(0.1, 0, 255, 0),
    ),
    "lstm": lambda: (_tensor(5, 2, 4), [_tensor(1, 2, 6), _tensor(1, 2, 6)], *_recurrent(4)),
    **dict.fromkeys(("hsmm", "hspmm", "smm"), lambda: (_tensor(4, 4).to_sparse(), _tensor(4, 4))),
    **dict.fromkeys(
        ("saddmm", "sspaddmm"), lambda: (_tensor(4, 4).to_sparse(), _tensor(4, 4).to_sparse(), _image()[0, 0, :4, :4])
    ),
    **dict.fromkeys(("int_repr", "q_scale", "q_zero_point", "qscheme"), lambda: (_quantized(_image()),)),
    **dict.fromkeys(
        ("q_per_channel_axis", "q_per_channel_scales", "q_per_channel_zero_points"),
        lambda: (torch.quantize_per_channel(_image(), torch.ones(4), torch.zeros(4), 1, torch.quint8),),
    ),
    "mkldnn_adaptive_avg_pool2d": lambda: (_image().detach().to_mkldnn(), [2, 2]),
    **{f"quantized_max_pool{n}d": lambda n=n: (_quantized(_tensor(2, 4, *[8] * n)), [2] * n) for n in (1, 2, 3)},
    "quantize_per_channel": lambda: (_image(), torch.ones(4), torch.zeros(4), 1, torch.quint8),
    "quantize_per_tensor": lambda: (_image(), 0.1, 0, torch.quint8),
    "quantize_per_tensor_dynamic": lambda: (_image(), torch.quint8, False),
    "resize_as_sparse_": lambda: (torch.eye(3).to_sparse(), torch.eye(4).to_sparse()),
    "segment_reduce": lambda: (_tensor(4, 4), "sum"),
    **dict.fromkeys(("set_autocast_ipu_enabled", "set_autocast_xla_enabled"), lambda: (False,)),
    **dict.fromkeys(("set_autocast_ipu_dtype", "set_autocast_xla_dtype"), lambda: (torch.bfloat16,)),
    "set_default_tensor_type": lambda: (torch.FloatTensor,),
    "set_rng_state": lambda: (torch.get_rng_state(),),
    "sym_ite": lambda: (True, 1, 2),
    "sparse_bsc_tensor": lambda: (torch.tensor([0, 1]), torch.tensor([0]), _tensor(1, 2, 2), (2, 2)),
    "sparse_bsr_tensor": lambda: (torch.tensor([0, 1]), torch.tensor([0]), _tensor(1, 2, 2), (2, 2)),
    **dict.fromkeys(
        ("sparse_compressed_tensor", "sparse_csc_tensor", "sparse_csr_tensor"),
        lambda: (torch.tensor([0, 1, 2]), torch.tensor([0, 1]), _tensor(2), (2, 2)),
    ),
    # methods
    "apply_": lambda: (torch.ones(4), lambda number: number + 1),
    "as_subclass": lambda: (_image(), nn.Parameter),
    **dict.fromkeys(("ccol_indices", "row_indices"), lambda: (torch.eye(4).to_sparse_csc(),)),
    **dict.fromkeys(("ccol_indices_copy", "row_indices_copy"), lambda: (torch.eye(4).to_sparse_csc(),)),
    **dict.fromkeys(("col_indices", "crow_indices"), lambda: (torch.eye(4).to_sparse_csr(),)),
    **dict.fromkeys(("col_indices_copy", "crow_indices_copy"), lambda: (torch.eye(4).to_sparse_csr(),)),
    **dict.fromkeys(("coalesce", "is_coalesced"), lambda: (_tensor(4, 4).to_sparse(),)),
    **dict.fromkeys(
        ("indices", "indices_copy", "values", "values_copy"), lambda: (_tensor(4, 4).to_sparse().coalesce(),)
    ),
    **dict.fromkeys(("is_shared", "is_tensor", "pin_memory"), lambda: (_image(),)),
    "map2_": lambda: (torch.ones(4), torch.ones(4), torch.ones(4), lambda a, b, c: a + b + c),
    "map_": lambda: (torch.ones(4), torch.ones(4), lambda a, b: a + b),
    **dict.fromkeys(("register_hook", "register_post_accumulate_grad_hook"), lambda: (_leaf(), lambda grad: None)),
    "set_": lambda: (torch.ones(4), torch.ones(2)),
    "share_memory_": lambda: (_leaf(),),
    "sparse_mask": lambda: (_tensor(4, 4), torch.eye(4).to_sparse().coalesce()),
    **dict.fromkeys(("sparse_resize_", "sparse_resize_and_clear_"), lambda: (torch.eye(4).to_sparse(), (5, 5), 2, 0)),
    **dict.fromkeys(("storage", "storage_type", "untyped_storage"), lambda: (_image(),)),
    "to_padded_tensor": lambda: (torch.nested.as_nested_tensor([_tensor(2, 3), _tensor(1, 3)]), 0.0),
}
# Those of them whose arguments have no places.
KEYWORDS: dict[str, dict[str, Any]] = {
    "frombuffer": {"dtype": torch.float32},
    "segment_reduce": {"lengths": torch.tensor([2, 2])},
    "sparse_compressed_tensor": {"layout": torch.sparse_csr},
}


def by_trial(call: Callable[..., Any], *, method: bool, name: str = "") -> Seen:
    """What the operation does with the plausible arguments that it takes."""
    seen = Seen()
    with _quiet():
        if name in ARGUMENTS:
            with contextlib.suppress(Exception):
                observe(seen, call, ARGUMENTS[name](), KEYWORDS.get(name, {}))
            return seen
        for arguments in plausible(method):
            with contextlib.suppress(Exception):
                observe(seen, call, arguments, {})
    return seen


def _makes_tensors(name: str) -> bool:
    """Does torch's documentation give the function a `requires_grad` argument of its own?"""
    text = getattr(getattr(torch, name), "__doc__", None) or ""
    return "requires_grad=" in text.split("\n\n")[0] + text[:400]


# -- modules -----------------------------------------------------------------------------------------------------------


def _pooled(dimensions: int) -> tuple[Any, ...]:
    pool = getattr(nn, f"MaxPool{dimensions}d")(2, return_indices=True)
    return tuple(pool(_tensor(2, 3, *[6] * dimensions)))


# Layers that the test database has not: what they are made with, and what they are given.
LAYERS: dict[str, tuple[tuple[Any, ...], Callable[[], tuple[Any, ...]]]] = {
    "AdaptiveLogSoftmaxWithLoss": ((6, 8, [4]), lambda: (_tensor(4, 6), torch.tensor([0, 1, 5, 7]))),
    "ChannelShuffle": ((2,), lambda: (_image(),)),
    "CosineSimilarity": ((), lambda: (_tensor(4, 6), _tensor(4, 6))),
    "CrossMapLRN2d": ((2,), lambda: (_image(),)),
    "EmbeddingBag": ((6, 4), lambda: (torch.tensor([[0, 1], [2, 3]]),)),
    "Flatten": ((), lambda: (_image(),)),
    "Fold": (((5, 5), (2, 2)), lambda: (_tensor(2, 16, 16),)),
    "FractionalMaxPool2d": ((2, (4, 4)), lambda: (_image(),)),
    "FractionalMaxPool3d": ((2, (3, 3, 3)), lambda: (_tensor(2, 2, 6, 6, 6),)),
    "Hardsigmoid": ((), lambda: (_image(),)),
    "Identity": ((), lambda: (_image(),)),
    "LazyBatchNorm1d": ((), lambda: (_tensor(2, 4, 8),)),
    "LazyBatchNorm2d": ((), lambda: (_image(),)),
    "LazyBatchNorm3d": ((), lambda: (_tensor(2, 4, 6, 6, 6),)),
    "LazyInstanceNorm1d": ((1e-5, 0.1, True), lambda: (_tensor(2, 4, 8),)),
    "LazyInstanceNorm2d": ((1e-5, 0.1, True), lambda: (_image(),)),
    "LazyInstanceNorm3d": ((1e-5, 0.1, True), lambda: (_tensor(2, 4, 6, 6, 6),)),
    "LazyLinear": ((5,), lambda: (_tensor(4, 6),)),
    **{f"MaxUnpool{n}d": ((2,), lambda n=n: _pooled(n)) for n in (1, 2, 3)},
    "PairwiseDistance": ((), lambda: (_tensor(4, 6), _tensor(4, 6))),
    "PixelShuffle": ((2,), lambda: (_image(),)),
    "PixelUnshuffle": ((2,), lambda: (_image(),)),
    "RNNBase": (("LSTM", 4, 6), lambda: (_tensor(5, 2, 4),)),
    "RReLU": ((), lambda: (_image() - 0.5,)),
    "TransformerDecoder": (
        (nn.TransformerDecoderLayer(8, 2, 16), 1),
        lambda: (_tensor(3, 2, 8), _tensor(3, 2, 8)),
    ),
    "TripletMarginLoss": ((), lambda: (_tensor(4, 6), _tensor(4, 6), _tensor(4, 6))),
    "TripletMarginWithDistanceLoss": ((), lambda: (_tensor(4, 6), _tensor(4, 6), _tensor(4, 6))),
    "Unflatten": ((1, (2, 2)), lambda: (_image(),)),
    "Unfold": ((2,), lambda: (_image(),)),
    "Upsample": ((None, 2), lambda: (_image(),)),
    "UpsamplingBilinear2d": ((None, 2), lambda: (_image(),)),
    "UpsamplingNearest2d": ((None, 2), lambda: (_image(),)),
    **{name: ((), lambda: (_image(),)) for name in ("AlphaDropout", "Dropout", "Dropout2d", "FeatureAlphaDropout")},
    "Dropout1d": ((), lambda: (_tensor(2, 4, 8),)),
    "Dropout3d": ((), lambda: (_tensor(2, 4, 6, 6, 6),)),
    "NLLLoss2d": ((), lambda: (_image(), torch.zeros(2, 8, 8, dtype=torch.long))),
    "SyncBatchNorm": ((4,), lambda: (_image(),)),  # on a CPU it refuses to run in training
}


def modules(chosen: Set[str] | None = None) -> dict[str, dict[str, Any]]:
    """What the layers of torch.nn keep, and whether they have parameters and an in-place form."""
    found: dict[str, dict[str, Any]] = {}
    for name, samples in _samples_of_modules(chosen):
        cls = getattr(nn, name)
        seen, without, evaluating = Seen(), Seen(), Seen()
        parameters = False
        with _quiet():
            for wants_grad, arguments, keywords, given, options in samples:
                with contextlib.suppress(Exception):
                    layer = cls(*arguments, **keywords)
                    if name == "SyncBatchNorm":
                        layer.eval()
                    observe(seen if wants_grad else without, layer, given, options)
                    parameters |= any(True for _ in layer.parameters())
                    observe(evaluating, layer.eval(), given, options)
        seen.view |= evaluating.view
        line = entry(
            seen,
            kind=cls.__module__.rpartition(".")[2],
            parameters=parameters,
            **(_in_place(name) if "inplace" in _parameters(cls.__init__) else {}),
        )
        if line is not None:
            if parameters:
                line["saves_input_for_parameters"] = "input" in without.saves
            found[name] = line
    return found


_Sample = tuple[bool, tuple[Any, ...], dict[str, Any], tuple[Any, ...], dict[str, Any]]


def _samples_of_modules(chosen: Set[str] | None) -> Iterator[tuple[str, list[_Sample]]]:
    """Each layer with: does the input want a gradient, what it is made with, what it is given."""
    from torch.testing._internal.common_modules import module_db

    for info in module_db:
        name = info.module_cls.__name__
        if getattr(nn, name, None) is info.module_cls and (chosen is None or name in chosen):
            samples: list[_Sample] = []
            for wants_grad in (True, False):
                with contextlib.suppress(Exception):
                    for sample in info.module_inputs_func(
                        info, device="cpu", dtype=torch.float32, requires_grad=wants_grad, training=True
                    )[:MOST_SAMPLES]:
                        made, given = sample.constructor_input, sample.forward_input
                        samples.append((wants_grad, made.args, made.kwargs, given.args, given.kwargs))
            yield name, samples
    for name, (made, given) in LAYERS.items():
        if hasattr(nn, name) and (chosen is None or name in chosen):
            detached = tuple(leaf.detach() if isinstance(leaf, torch.Tensor) else leaf for leaf in given())
            yield name, [(True, made, {}, given(), {}), (False, made, {}, detached, {})]


def _in_place(name: str) -> dict[str, Any]:
    """What working in place saves, and where the argument stands among those of the class and of the function."""
    cls = getattr(nn, name)
    return {
        "inplace": "argument",
        "inplace_effect": _effect_in_place(name),
        "inplace_position": _parameters(cls.__init__).index("inplace") - 1,
    }


def _effect_in_place(name: str) -> str:
    """ "saves" a full activation for backward before a convolution, is "transient" (saves a copy while the layer runs),
    saves "nothing" (what autograd copies is as large), or is "ignored" by the layer.
    """
    first, last = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1)
    kept: dict[bool, dict[int, int]] = {}
    for inplace in (False, True):
        layer = _activation(name, inplace)
        held: dict[int, torch.Tensor] = {}
        image = torch.randn(2, 3, 16, 16)

        def pack(tensor: torch.Tensor, held: dict[int, torch.Tensor] = held) -> torch.Tensor:
            held[_storage(tensor)] = tensor  # held: its address is not given away again
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            value = first(image)
            made = layer(value)
            last(made)
        foreign = {_storage(p) for p in (image, *first.parameters(), *last.parameters())}
        kept[inplace] = {a: t.untyped_storage().nbytes() for a, t in held.items() if a not in foreign}
        if inplace and _storage(made) != _storage(value):
            return "ignored"
    unit = value.numel() * value.element_size()
    if sum(kept[False].values()) - sum(kept[True].values()) >= unit:
        return "saves"
    beside = sum(size for address, size in kept[True].items() if address != _storage(value))
    return "nothing" if beside >= unit else "transient"


def _activation(name: str, inplace: bool) -> Callable[[torch.Tensor], torch.Tensor]:
    arguments = (0.1, 0.0) if name == "Threshold" else ()
    layer = getattr(nn, name)(*arguments, inplace=inplace)
    if name == "Dropout1d":
        return lambda value: layer(value.flatten(2)).view_as(value)
    return lambda value: layer(value)


# -- modes and devices -------------------------------------------------------------------------------------------------


_MODE_MODULES = (
    (torch, "torch"),
    (torch.autograd, "torch.autograd"),
    (torch.autograd.grad_mode, "torch.autograd.grad_mode"),
)


def gradient_modes() -> dict[str, str]:
    """Names of torch that turn gradients on or off for what runs within them, or from then on."""
    found: dict[str, str] = {}
    for module, prefix in _MODE_MODULES:
        for name in dir(module):
            made = getattr(module, name)
            if name.startswith("_") or not inspect.isclass(made) or not hasattr(made, "__enter__"):
                continue
            for arguments, suffix in (((), ""), ((False,), "(False)")):
                effect = _effect(made, arguments)
                if effect is not None:
                    found[f"{prefix}.{name}{suffix}"] = effect
                    break
    return found


def _effect(made: Callable[..., Any], arguments: tuple[Any, ...]) -> str | None:
    inside: list[bool] = []
    for before in (True, False):
        with torch.set_grad_enabled(before):
            try:
                with _quiet(), made(*arguments):
                    inside.append(torch.is_grad_enabled())
            except Exception:  # noqa: BLE001 - it wants other arguments
                return None
    return {(False, False): "off", (True, True): "on"}.get((inside[0], inside[1]))


def movers() -> set[str]:
    """Tensor methods whose result may lie on another device; run on tensors without data."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    found: set[str] = set()
    logging.getLogger("torch._subclasses.fake_tensor").setLevel(logging.CRITICAL)  # it tells of all that fails
    with FakeTensorMode(), _quiet():
        for name in sorted(set(dir(torch.Tensor)) - _NOT_TRIED - ARGUMENTS.keys()):
            if name.startswith("_") or not callable(getattr(torch.Tensor, name)):
                continue
            for here, arguments in itertools.product(("cpu", "meta"), ((), ("cpu",), ("meta",))):
                with contextlib.suppress(Exception):
                    moved = getattr(torch.empty(2, 2, device=here), name)(*arguments)
                    if isinstance(moved, torch.Tensor) and moved.device.type != here:
                        found.add(name)
    return found | {name for name in ("cuda", "xpu", "mtia") if hasattr(torch.Tensor, name)}


# -- the whole -------------------------------------------------------------------------------------------------------


_HELPERS = ("typing", "torch._jit_internal", "torch.overrides", "torch._utils", "torch._utils_internal")


def public(module: Any) -> list[str]:
    """The public callables of a module or class: no helpers that it only imports, nothing that only raises."""
    named = {name: getattr(module, name) for name in dir(module) if not name.startswith(("_", "has_torch_function"))}
    return sorted(
        name
        for name, made in named.items()
        if callable(made)
        and not isinstance(made, type)
        and getattr(made, "__module__", None) not in _HELPERS
        and not torch_formulas.only_raises(made)
    )


def layer_names() -> list[str]:
    """The layers of torch.nn: its modules less abstract bases and containers, which cannot be called."""
    named = {name: getattr(nn, name) for name in dir(nn)}
    return sorted(
        name
        for name, made in named.items()
        if isinstance(made, type) and issubclass(made, nn.Module) and made.forward is not nn.Module.forward
    )


def derive() -> dict[str, Any]:
    """The content of the data file."""
    torch.manual_seed(0)
    functions, methods, inplace = from_database()
    overridable = {id(f) for known in torch.overrides.get_overridable_functions().values() for f in known}
    for module in ("torch", "torch.nn.functional", "torch.linalg", "torch.fft", "torch.special"):
        for name in public(_found(module)):
            made = _found(f"{module}.{name}")
            tried = id(made) in overridable or name in ARGUMENTS or (module == "torch" and _makes_tensors(name))
            known = functions.get(f"{module}.{name}")
            if tried and not (known and known.runs) and name not in _NOT_TRIED:
                functions[f"{module}.{name}"] = by_trial(made, method=False, name=name)
    for name in public(torch.Tensor):
        known = methods.get(name)
        if name not in _NOT_TRIED and not (known and known.runs):
            methods[name] = by_trial(getattr(torch.Tensor, name), method=True, name=name)
    moving = movers()
    data: dict[str, Any] = {
        "torch": torch.__version__.split("+")[0],
        "functions": _entries((name, seen, _takes_in_place(name)) for name, seen in functions.items()),
        "methods": _entries(
            (
                name,
                seen,
                {
                    "inplace": f"{name}_" if name in inplace else None,
                    "inplace_saves": sorted(inplace[name].saves) if name in inplace else None,
                    "moves": name in moving,
                },
            )
            for name, seen in methods.items()
        ),
        "modules": dict(sorted(modules().items())),
        "gradient_modes": gradient_modes(),
    }
    for name in moving - data["methods"].keys():  # to devices that are not here: as `to` does it
        data["methods"][name] = data["methods"]["to"]
    known = data["functions"]
    unseen = [n for n in public(torch) if f"torch.{n}" not in known and f"torch.{n.removesuffix('_')}" not in known]
    data["settings"] = torch_formulas.settings(unseen)
    lines = torch_formulas.by_formula(sorted(set(unseen) - set(data["settings"])))
    data["functions"] |= {f"torch.{name}": line for name, line in lines.items()}
    _keep_older(data)
    for kind in ("functions", "methods", "modules"):
        data[kind] = dict(sorted(data[kind].items()))
    data["coverage"] = {part: [covered, of] for part, covered, of, _ in coverage(data)}
    return data


def _keep_older(data: dict[str, Any]) -> None:
    """Keep the lines of what this release has no more, with the release that they were seen in."""
    before = json.loads(DATA.read_text(encoding="utf-8")) if DATA.exists() else {"torch": data["torch"]}
    if before["torch"] == data["torch"]:
        gone = {(kind, name) for kind in before for name, line in _lines(before, kind) if "until" in line}
    else:
        gone = {(kind, name) for kind in before for name, _ in _lines(before, kind)}
    for kind, name in gone:
        data[kind].setdefault(name, {**before[kind][name], "until": before[kind][name].get("until", before["torch"])})


def _lines(data: dict[str, Any], kind: str) -> Iterable[tuple[str, dict[str, Any]]]:
    return data[kind].items() if kind in ("functions", "methods", "modules") else ()


def _takes_in_place(qualified: str) -> dict[str, Any]:
    parameters = _parameters(_found(qualified))
    if "inplace" not in parameters:
        return {}
    return {"inplace": "argument", "inplace_position": parameters.index("inplace")}


def _entries(found: Iterable[tuple[str, Seen, dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    lines = ((name, entry(seen, **more)) for name, seen, more in found)
    return dict(sorted((name, line) for name, line in lines if line is not None))


def text_of(data: dict[str, Any]) -> str:
    """JSON with one operation a line, so that changes can be read."""
    parts = []
    for key, value in data.items():
        if isinstance(value, dict):
            lines = ",\n".join(f"    {json.dumps(name)}: {json.dumps(line)}" for name, line in value.items())
            parts.append(f"  {json.dumps(key)}: {{\n{lines}\n  }}")
        else:
            parts.append(f"  {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def coverage(data: dict[str, Any]) -> Iterator[tuple[str, int, int, list[str]]]:
    """Of the public callables of each part of torch: how many are covered, of how many; the names of the others."""
    for module in ("torch", "torch.nn.functional", "torch.linalg", "torch.fft", "torch.special"):
        known = {name.removeprefix(f"{module}.") for name in data["functions"]}
        known |= set(data["settings"]) if module == "torch" else set()
        yield _covered(module, public(_found(module)), known)
    yield _covered("torch.Tensor", public(torch.Tensor), data["methods"].keys())
    yield _covered("torch.nn", layer_names(), data["modules"].keys())


def _covered(part: str, names: list[str], known: Set[str]) -> tuple[str, int, int, list[str]]:
    missing = [name for name in names if name not in known and name.removesuffix("_") not in known]  # or in place
    return part, len(names) - len(missing), len(names), missing


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    parser.add_argument("--coverage", action="store_true", help="show what the data file covers")
    options = parser.parse_args()
    if options.coverage:
        for name, covered, of, missing in coverage(json.loads(DATA.read_text(encoding="utf-8"))):
            print(f"{name}: {covered} of {of} ({covered / of:.0%})\n  not: {' '.join(missing)}")
        return 0
    text = text_of(derive())
    if options.check:
        old = DATA.read_text(encoding="utf-8").splitlines()
        differing = [line for line in text.splitlines() if line not in old]
        print("\n".join(differing) or "the data file says what this torch does")
        return 1 if differing else 0
    DATA.write_text(text, encoding="utf-8")
    print(f"{DATA}: {len(text)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
