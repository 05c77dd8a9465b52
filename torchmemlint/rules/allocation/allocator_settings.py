"""Settings of the caching allocator that come when it has been read already.

The allocator of CUDA reads its environment variable once: the first time that it is asked for a setting, which is when
CUDA is initialised (c10/cuda/CUDAAllocatorConfig.h, the same in torch 2.2, 2.6 and 2.13), and for `backend:` when torch
is loaded (pytorch#104801). What is put into `os.environ` afterwards reaches only processes that are started later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchmemlint.flow.fact.formulas import Formula
from torchmemlint.flow.ir.blocks import Layout, blocks, operations
from torchmemlint.flow.ir.control import If, Try
from torchmemlint.flow.ir.ops import Call, CallMethod, Import, Op, SetItem
from torchmemlint.flow.ir.places import ConstantKey, Temp
from torchmemlint.immutable import immutable

VARIABLES = frozenset({"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF"})
_SETTERS = frozenset({"os.environ.setdefault", "os.putenv"})
# Functions that call torch.cuda._lazy_init, in each of these releases (torch/cuda/__init__.py).
_INITIALISING = frozenset(
    f"torch.cuda.{name}"
    for name in (
        "init current_device synchronize current_stream default_stream get_device_properties get_device_name "
        "get_device_capability mem_get_info"
    ).split()
)


@immutable()
class LateSetting:
    """A setting that is not read."""

    op: Op
    variable: str
    before: Op  # what has had the variable read


def find(formula: Formula) -> Iterator[LateSetting]:
    """The settings of a function that come too late."""
    layout = Layout(formula.function)
    for op in operations(formula.function.body):
        variable, value = _set(formula, op)
        if variable not in VARIABLES or _is_chosen(layout, op):
            continue
        before = next(_uses(formula, _earlier(formula, layout, op)), None)
        if before is None and "backend:" in str(formula.constant(value)):
            before = _torch_imported(formula, op)
        if before is not None:
            yield LateSetting(op, str(variable), before)


def _set(formula: Formula, op: Op) -> tuple[object, Temp | None]:
    """The variable that an operation sets, and to what."""
    match op:
        case SetItem(base=owner, key=ConstantKey(value=name), src=value) if formula.name(owner) == "os.environ":
            return name, value
        case Call(arguments=[name, value, *_]) | CallMethod(arguments=[name, value, *_]):
            if formula.called(op) in _SETTERS:
                return formula.constant(name.temp), value.temp
    return None, None


def _is_chosen(layout: Layout, op: Op) -> bool:
    """In an `except` clause: for what comes after a failure, perhaps in another process."""
    around = ((above, block) for above, block in layout.above(op) if isinstance(above, Try))
    return any(block is handler.body for above, block in around for handler in above.handlers)


def _earlier(formula: Formula, layout: Layout, op: Op) -> Iterator[Op]:
    """What runs before it in the blocks that it stands in."""
    current = op
    for above, block in layout.above(op):
        yield from block[: block.index(current)]
        current = above
    yield from formula.function.body[: formula.function.body.index(current)]


def _uses(formula: Formula, ops: Iterable[Op]) -> Iterator[Op]:
    """Calls that initialise CUDA for certain, none under a condition on something else."""
    for op in ops:
        if isinstance(op, Call | CallMethod) and _initialises(formula, op):
            yield op
        if not isinstance(op, If) or _is_about_cuda(formula, op.test):
            for block in blocks(op):
                yield from _uses(formula, block)


def _is_about_cuda(formula: Formula, test: Temp) -> bool:
    made = formula.written(test)
    spelled = formula.spelled(made) if isinstance(made, CallMethod) else ""
    return spelled.endswith(("cuda.is_available", "accelerator.is_available"))


def _initialises(formula: Formula, op: Call | CallMethod) -> bool:
    qualified = formula.called(op)
    if isinstance(op, CallMethod) and (op.name == "cuda" or (op.name == "to" and _is_cuda(formula, op, ""))):
        return qualified != "torch.cuda"
    of_torch = qualified.startswith("torch.") and qualified.count(".") == 1
    return qualified in _INITIALISING or (of_torch and _is_cuda(formula, op, "device"))


def _is_cuda(formula: Formula, op: Call | CallMethod, name: str) -> bool:
    """Is the argument of a name, or the first one, a device of CUDA?"""
    given = [one.temp for one in op.arguments if one.name == name][:1]
    return any(str(formula.constant(temp)).startswith("cuda") for temp in given)


def _torch_imported(formula: Formula, op: Op) -> Op | None:
    """Where torch is imported at the top of the file, before an operation."""
    imports = (one for one in operations(formula.function.unit.module.body) if isinstance(one, Import))
    of_torch = (one for one in imports if one.qualified.partition(".")[0] == "torch" and not one.relative)
    return next((one for one in of_torch if one.span < op.span), None)
