"""Data sets whose items lie ready: their `__getitem__` only takes them out of what the object holds.

Works on the standard parser's trees, and so of classes in any file. What is called decides: an item that is opened,
decoded, tokenised or transformed is work for a worker; one that is looked up, or stacked of what was looked up, is not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Set

from torchmemlint.flow import datasets
from torchmemlint.flow.bindings import expression_of
from torchmemlint.flow.program import ClassInfo, Function
from torchmemlint.flow.values import Instance
from torchmemlint.syntax.outline import defaults, dotted

MAX_DEPTH = 3  # methods that call methods of the same object
# Functions that leave a worker nothing to do.
_TRIVIAL = frozenset(
    "torch.tensor torch.as_tensor torch.from_numpy torch.LongTensor torch.FloatTensor torch.Tensor torch.BoolTensor "
    "torch.IntTensor torch.stack torch.argmax numpy.array numpy.asarray numpy.stack numpy.float32 numpy.float64 "
    "numpy.int32 numpy.int64 "
    "len int float str bool slice range min max dict list tuple zip enumerate isinstance type".split()
)
# Methods of arrays, tensors and dictionaries that do little more.
_CONVERTING = frozenset(
    "argmax astype bool clone contiguous copy detach dim double flatten float get int item items keys long max mean "
    "min numpy permute reshape size squeeze sum t to tolist transpose unsqueeze values view".split()
)
_EXCEPTIONS = ("Error", "Exception")


def only_indexes(cls: ClassInfo, left_out: Set[str] = frozenset()) -> bool:
    """Does `__getitem__` of a class do no more than that? `left_out`: what it would call, had the object been given it.

    False where the class has none in view.
    """
    function = cls.method("__getitem__")
    return function is not None and _is_trivial(function, cls, left_out, 0)


def _is_trivial(function: Function, cls: ClassInfo, left_out: Set[str], depth: int) -> bool:
    if function.syntax is None:
        called = function.outline.called - left_out
        return all(_costs_nothing(path, function) for path in called)
    calls = (node for statement in function.syntax.body for node in ast.walk(statement) if isinstance(node, ast.Call))
    return all(_leaves_nothing(call, function, cls, left_out, depth) for call in calls)


def _leaves_nothing(call: ast.Call, function: Function, cls: ClassInfo, left_out: Set[str], depth: int) -> bool:
    path = dotted(call.func)
    if path in left_out or (path and _costs_nothing(path, function)):
        return True
    owner, _, name = path.rpartition(".")
    if owner == "self":
        method = cls.method(name)
        return method is not None and depth < MAX_DEPTH and _is_trivial(method, cls, left_out, depth + 1)
    match call.func:
        case ast.Attribute(value=ast.Subscript() | ast.Call(), attr=converted) if converted in _CONVERTING:
            return True
        case ast.Attribute(value=ast.Subscript(), attr="decode"):
            return all(isinstance(argument, ast.Constant) for argument in call.args)  # bytes: of names, not of images
    return False


def _costs_nothing(path: str, function: Function) -> bool:
    qualified = function.program.qualify(path)
    owner, _, last = path.rpartition(".")
    is_method = owner.partition(".")[0] not in function.program.imported
    return qualified in _TRIVIAL or last.endswith(_EXCEPTIONS) or bool(owner and is_method and last in _CONVERTING)


def moves(function: Function) -> bool:
    """Does it, or what it calls in its file, put tensors on a device that may be an accelerator?

    Forked workers cannot: CUDA is initialised once, in the process that trains.
    """
    return any(_moves(node) for one in datasets.reached(function) for node in _calls(one))


def _calls(function: Function) -> Iterator[ast.Call]:
    root = function.own_syntax
    yield from (node for node in ast.walk(root) if isinstance(node, ast.Call)) if root is not None else ()


def _moves(call: ast.Call) -> bool:
    if not isinstance(call.func, ast.Attribute):
        return False
    if call.func.attr == "cuda":
        return True
    given = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg == "device")]
    return call.func.attr == "to" and any(_is_device(one) for one in given)


def _is_device(given: ast.expr) -> bool:
    match given:
        case ast.Constant(value=str(name)):
            return name.partition(":")[0] in ("cuda", "mps", "xpu")
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.endswith("device")
    return False


def looked_up(cls: ClassInfo) -> Iterator[str]:
    """The attributes whose elements `__getitem__` takes out: "self.samples"."""
    function = cls.method("__getitem__")
    if function is None or function.syntax is None:
        return
    for node in ast.walk(function.syntax):
        if isinstance(node, ast.Subscript) and dotted(node.value).startswith("self."):
            yield dotted(node.value)


def left_out(data: Instance) -> frozenset[str]:
    """Functions that a data set would call had its constructor been given them: `transform=None`."""
    call = expression_of(data.made.node) if data.made is not None else None
    return left_out_of(data.cls, call) if isinstance(call, ast.Call) else frozenset()


def left_out_of(cls: ClassInfo, call: ast.Call) -> frozenset[str]:
    """The same of an object that a call in any file makes."""
    if any(isinstance(one, ast.Starred) for one in call.args) or any(one.arg is None for one in call.keywords):
        return frozenset()
    init = cls.method("__init__")
    if init is None or init.syntax is None:
        return frozenset()
    named = {one.arg for one in call.keywords if not (isinstance(one.value, ast.Constant) and one.value.value is None)}
    parameters = [*init.syntax.args.posonlyargs, *init.syntax.args.args][1:]
    given = {*named, *(p.arg for p in parameters[: len(call.args)])}
    without = {
        name
        for name, value in defaults(init.syntax.args).items()
        if isinstance(value, ast.Constant) and value.value is None
    }
    absent = without - given
    return frozenset(
        dotted(target)
        for node in ast.walk(init.syntax)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id in absent
        for target in node.targets
    )
