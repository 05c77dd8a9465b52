"""What PyTorch's own functions and tensor methods do to graphs, as far as the rules need it.

What can be measured is derived from torch itself (`operations`, from `tools/torch_knowledge.py`). The rest is
hand-written from the documentation of torch 2.13 (`torch`, `torch.Tensor`, `torch.nn.functional`). Functions of torch
that neither says anything of are unknown, as other libraries' are.
"""

from __future__ import annotations

from functools import lru_cache

from torchmemlint.knowledge import autograd, operations

# Results that never carry a graph: integer or boolean. By hand: factories, Python booleans that stand for one, and
# `unique`, whose values have a `grad_fn` that only raises.
DISCRETE = operations.discrete() | frozenset(
    "allclose bincount equal is_nonzero one_hot randint randperm tril_indices triu_indices unique "
    "unique_consecutive".split()
)
# The graph ends here: a number or array comes out.
READERS = frozenset("item tolist numpy __float__ __int__ __array__ is_nonzero asnumpy asscalar".split())
# Python values or metadata: no tensor comes out, nothing is kept. `retain_grad` and hooks give no tensor, but stay.
METADATA = operations.values() - READERS - DISCRETE - {"retain_grad"} - autograd.names("tensor-hooks")
METADATA_ATTRIBUTES = frozenset(
    "shape device dtype ndim is_cuda is_leaf requires_grad layout itemsize nbytes names is_sparse is_quantized".split()
)
# Types without gradients: "only Tensors of floating point and complex dtype can require gradients" (torch's error).
DISCRETE_TYPES = frozenset(
    "bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 short int long BoolTensor ByteTensor CharTensor "
    "ShortTensor IntTensor LongTensor".split()
)
WIDTHS = {  # bytes of one number
    f"torch.{name}": width
    for width, names in {
        1: "bool uint8 int8",
        2: "float16 half bfloat16 int16 short",
        4: "float32 float int32 int",
        8: "float64 double int64 long complex64 cfloat",
        16: "complex128 cdouble",
    }.items()
    for name in names.split()
}
# Constructors of old, with what they make of sizes; `Tensor` makes what is set as the default. They take no device.
CONSTRUCTORS = {
    "Tensor": "",
    "FloatTensor": "float32",
    "DoubleTensor": "float64",
    "HalfTensor": "float16",
    "BFloat16Tensor": "bfloat16",
    "ByteTensor": "uint8",
    "CharTensor": "int8",
    "ShortTensor": "int16",
    "IntTensor": "int32",
    "LongTensor": "int64",
    "BoolTensor": "bool",
}
CUTS = frozenset({"detach", "detach_"})
# Methods and attributes of a tensor that give what has no graph, whatever graph the tensor has.
GRAPHLESS = CUTS | READERS | DISCRETE | DISCRETE_TYPES | METADATA | METADATA_ATTRIBUTES | {"data"}
MOVES = frozenset({"to", "cuda"})  # to a device
# Same elements in another place, dtype, or view: the graph goes through.
COPIES = frozenset(
    "clone cpu cuda to float double half bfloat16 type type_as contiguous view view_as reshape reshape_as flatten "
    "unflatten squeeze unsqueeze transpose permute t movedim expand expand_as requires_grad_ pin_memory share_memory_ "
    "retain_grad register_hook alias swapaxes ravel".split()
)
# Of what they give, each element is computed of the one in its place.
SAME_DIMENSIONS = frozenset(
    "clone contiguous cpu cuda detach double exp float half log log_softmax sigmoid softmax tanh to bfloat16".split()
)
# The numbers among their arguments are dimensions of the tensor.
BY_DIMENSIONS = frozenset(
    "amax amin argmax argmin argsort cumsum flatten log_softmax logsumexp mean size softmax sum swapaxes transpose "
    "unbind".split()
)
ADDING_DIMENSIONS = frozenset({"stack", "unsqueeze"})
# They take images, or what is stored like them: batch, channels, places.
OF_IMAGES = frozenset(
    "torchvision.utils.save_image torchvision.utils.make_grid torch.nn.functional.interpolate "
    "torch.nn.functional.grid_sample torch.nn.functional.pixel_shuffle".split()
)
# Random or constructing functions: a fresh tensor without a graph unless requires_grad=True is given. By hand: those
# that take a tensor for its shape or its probabilities, that wrap what is mostly no tensor, and constructors of old.
FACTORIES = operations.factories() | frozenset(
    "as_tensor asarray bernoulli empty_like from_dlpack from_file from_numpy frombuffer full_like linspace logspace "
    "normal ones_like poisson rand_like randint_like randn_like tensor zeros_like new_empty new_full new_ones "
    "new_tensor new_zeros FloatTensor LongTensor Tensor IntTensor BoolTensor DoubleTensor HalfTensor ByteTensor".split()
)
DISCRETE_FACTORIES = frozenset(
    "arange randint randint_like randperm tril_indices triu_indices LongTensor IntTensor BoolTensor ByteTensor".split()
)
JOINERS = frozenset(
    "cat concat concatenate stack hstack vstack dstack column_stack row_stack block_diag cartesian_prod".split()
)
STACKING = frozenset({"stack", "dstack", "column_stack"})  # of these, those that take single numbers, too
# Weighted sums of what they are given.
SUMS = JOINERS | frozenset("add add_ mean nanmean nansum neg neg_ negative sub sub_ subtract sum".split())
QUOTIENTS = frozenset("div div_ divide divide_ true_divide".split())  # of the first by the second
# Results that are sequences of tensors.
SPLITTERS = frozenset(
    "split chunk unbind tensor_split meshgrid broadcast_tensors where_indices hsplit vsplit dsplit".split()
)


@lru_cache(maxsize=2048)
def is_known(qualified: str) -> bool:
    """Is it known what this function of torch does, or its form that does not work in place? Others are unknown."""
    owner, _, last = qualified.rpartition(".")
    name = last.rstrip("_")
    if operations.function(qualified) is not None or operations.function(f"{owner}.{name}") is not None:
        return True
    if owner == "torch.functional":  # where torch has some of its functions from
        return operations.function(f"torch.{name}") is not None
    return owner in ("torch", "torch.Tensor") and (name in _BY_HAND or operations.method(name) is not None)


_BY_HAND = DISCRETE | METADATA | FACTORIES | JOINERS | SPLITTERS | COPIES | CUTS | {"is_tensor"}

# Modules of torch whose functions compute on tensors (others, such as torch.utils, are unknown unless listed).
COMPUTING = ("torch.", "torch.nn.functional.", "torch.linalg.", "torch.fft.", "torch.special.", "torch.sparse.")
NOT_COMPUTING = (
    "torch.utils.",
    "torch.cuda.",
    "torch.backends.",
    "torch.distributed.",
    "torch.optim.",
    "torch.jit.",
    "torch.onnx.",
    "torch.hub.",
    "torch.random.",
    "torch.multiprocessing.",
    "torch.autograd.",
    "torch.nn.utils.",
    "torch.nn.init.",
    "torch.nn.parallel.",
    "torch.fx.",
    "torch.ao.",
    "torch.quantization.",
    "torch.testing.",
    "torch.profiler.",
    "torch.distributions.",
    "torch.mps.",
    "torch.xpu.",
    "torch.amp.",
    "torch.serialization.",
    "torch.library.",
    "torch.ops.",
    "torch.export.",
    "torch.futures.",
    "torch.package.",
    "torch.types.",
    "torch.version.",
    "torch.overrides.",
)
# By hand: types, and functions of files and code.
NOT_OPERATIONS = operations.settings() | frozenset(
    "load device dtype Generator Size finfo iinfo autocast compile get_rng_state".split()
)

# Names of one operation. Source: "Alias for ..." in the documentation of torch.
ALIASES = {
    "absolute": "abs",
    "clip": "clamp",
    "concat": "cat",
    "concatenate": "cat",
    "divide": "div",
    "moveaxis": "movedim",
    "multiply": "mul",
    "negative": "neg",
    "row_stack": "vstack",
    "subtract": "sub",
    "swapaxes": "transpose",
    "swapdims": "transpose",
    "true_divide": "div",
}
# Functions of other packages that compute what one of torch's does, with the same arguments. Sources:
# https://einops.rocks/api/einsum/, https://optimized-einsum.readthedocs.io/en/stable/api_reference.html
COUNTERPARTS = {"einops.einsum": "torch.einsum", "opt_einsum.contract": "torch.einsum"}
NAMED_AXES = frozenset({"einops.einsum"})  # of these, what takes the equation last, with words for axes
# Layers of torch.nn that compute what a function does.
FUNCTIONS_OF_LAYERS = {
    "CosineSimilarity": "cosine_similarity",
    "CrossEntropyLoss": "cross_entropy",
    "NLLLoss": "nll_loss",
    "PairwiseDistance": "pairwise_distance",
    "Sigmoid": "sigmoid",
    "Softmax": "softmax",
    "Softmax2d": "softmax",
}
PARAMETERS = frozenset({"torch.nn.Parameter", "torch.nn.parameter.Parameter"})
WEIGHTS = frozenset({"weight", "bias"})  # of most layers
