"""Forward passes whose graph takes next to nothing: one layer, one row through linear layers, a script on the host.

Works on the standard parser's trees, and is asked only about what would be reported. What it does not know is not
small.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import libcst as cst

from torchmemlint.flow.bindings import expression_of, module_level, of_attribute
from torchmemlint.flow.call_sites import CallSite
from torchmemlint.flow.facts import FileFacts, ModuleCall
from torchmemlint.flow.program import ClassInfo, Function, Program
from torchmemlint.flow.values import ModuleValue
from torchmemlint.immutable import immutable
from torchmemlint.syntax.outline import Outline, dotted

_DEPTH = 6

# Layers that save their input for the backward pass, which is there anyway, and their weights.
_SINGLE = frozenset({"torch.nn.Linear", "torch.nn.Bilinear", "torch.nn.Embedding"})

# Layers that keep a number or two for each unit of a row.
_LINEAR = frozenset({"Linear", "LazyLinear"})
_PLAIN = _LINEAR | frozenset(
    "BatchNorm1d CELU Dropout ELU Flatten GELU Hardtanh Identity LayerNorm LeakyReLU LogSoftmax Mish Module ModuleDict "
    "ModuleList PReLU Parameter ParameterList ReLU ReLU6 SELU Sequential SiLU Sigmoid Softmax Softplus Softsign Tanh "
    "Unflatten".split()
)
_PLAIN_FUNCTIONS = frozenset(
    "celu dropout elu gelu layer_norm leaky_relu linear log_softmax logsigmoid mish normalize one_hot relu relu_ selu "
    "sigmoid silu softmax softplus tanh".split()
)
_PRODUCTS = frozenset("baddbmm bmm conv1d conv2d conv3d einsum matmul outer".split())  # attention, convolutions by hand

_FROM_HOST = frozenset(
    f"torch.{name}" for name in "DoubleTensor FloatTensor Tensor as_tensor from_numpy tensor cuda.FloatTensor".split()
)
_KEEPING = frozenset("cpu contiguous cuda double float long to type".split())  # give a tensor of the same shape
_WRAPPING = frozenset({"torch.autograd.Variable", "numpy.array", "numpy.asarray", "numpy.float32"})

_MOVING_NAMES = frozenset("cuda device get_device hpu mps set_default_device set_default_tensor_type to xpu".split())
_MOVING_FRAMEWORKS = frozenset(
    "accelerate catalyst composer deepspeed fastai ignite lightning pytorch_lightning ray sentence_transformers skorch "
    "stable_baselines3 transformers".split()
)


def is_small(facts: FileFacts, call: ModuleCall) -> bool:
    """Is the graph of a forward pass, dropped before the next one, a few kilobytes or in the host's memory for certain?

    A layer that saves nothing but its input; one row of numbers (the state of an environment, in most cases) through a
    network of linear layers; or a network that the same script defines, runs, and never moves to a device.
    """
    program, module = facts.program, call.module
    if module is not None and module.qualified in _SINGLE and not call.method:
        return True
    cls = _class_of(call)
    if cls is not None and _stays_on_host(program, cls):
        return True
    linear = _Layers().of_class(cls) if cls is not None else _is_of_linear_layers(module)
    return linear and _takes_one_row(facts, call)


def _class_of(call: ModuleCall) -> ClassInfo | None:
    """The class of the project whose forward pass it is: of the module, or of a method that runs the module's parts."""
    if call.module is not None:
        return call.module.cls
    owner = call.function.cls if call.function is not None else None
    return owner if owner is not None and owner.is_module else None


def _stays_on_host(program: Program, cls: ClassInfo) -> bool:
    """A script by itself: it runs what it defines, and nothing in it speaks of a device."""
    if cls.program is not program:
        return False
    if not _runs_itself(program) or any(not names.isdisjoint(_MOVING_NAMES) for names in _names(program)):
        return False
    return all(found.split(".")[0] not in _MOVING_FRAMEWORKS for found in program.imported.values())


def _names(program: Program) -> Iterator[set[str]]:
    return (outline.names for outline in program.outlines())


def _runs_itself(program: Program) -> bool:
    """Does it define something and go on to call it, as scripts and notebooks do?"""
    nodes = [node for statement in module_level(program) for node in ast.walk(statement)]
    if any(isinstance(node, ast.Name) and node.id == "__name__" for node in nodes):
        return True
    called = (node.func for node in nodes if isinstance(node, ast.Call))
    return any(isinstance(func, ast.Name) and program.defines(func.id) for func in called)


def _is_of_linear_layers(module: ModuleValue | None) -> bool:
    if module is None or module.qualified != "torch.nn.Sequential" or not module.children:
        return False
    return all(
        isinstance(child, ModuleValue)
        and child.cls is None
        and child.qualified.startswith("torch.nn.")
        and child.qualified.rpartition(".")[2] in _PLAIN
        for child in module.children
    )


class _Layers:
    """Looks through the text of a class, and of what it calls, for layers that are not linear."""

    def __init__(self) -> None:
        self._seen: set[ClassInfo | Function] = set()
        self._linear = False

    def of_class(self, cls: ClassInfo) -> bool:
        """Is it visibly made of linear layers, activations and the like, with nothing that was given to it?"""
        return self._is_plain_class(cls) and self._linear

    def _is_plain_class(self, cls: ClassInfo) -> bool:
        if cls in self._seen:
            return True
        self._seen.add(cls)
        if any(not base.startswith(("torch.nn.Module", "object", "abc.", "typing.")) for base in cls.external_bases()):
            return False
        return all(
            self._is_plain(one.program, one.outline) and not _calls_what_it_is_given(one) for one in cls.ancestors()
        )

    def _is_plain(self, program: Program, outline: Outline) -> bool:
        if not outline.calls.isdisjoint(_PRODUCTS):
            return False
        return all(self._is_plain_call(program, path) for path in outline.called)

    def _is_plain_call(self, program: Program, path: str) -> bool:
        qualified = program.qualify(path)
        last = qualified.rpartition(".")[2]
        if qualified.startswith("torch.nn.functional."):
            return last in _PLAIN_FUNCTIONS
        if qualified.startswith(("torch.nn.init.", "torch.nn.utils.")):
            return True
        if program.contracts.is_module_class(qualified):
            self._linear = self._linear or last in _LINEAR
            return qualified.startswith("torch.nn.") and last in _PLAIN
        if path.startswith("self."):
            return True  # a method, which is part of the class, or an attribute: see below
        found = program.find_function(path) or program.find_class(path) or program.resolve(qualified)
        match found:
            case Function():
                if found in self._seen:
                    return True
                self._seen.add(found)
                return self._is_plain(found.program, found.outline)
            case ClassInfo():
                return not found.is_module or self._is_plain_class(found)
        return True


def _calls_what_it_is_given(cls: ClassInfo) -> bool:
    """Is an attribute called that is a parameter of the constructor: `self.encoder = encoder`?"""
    constructor = cls.methods.get("__init__")
    if constructor is None or constructor.syntax is None:
        return False
    arguments = constructor.syntax.args
    given = {one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    called = [path for path in cls.outline.called if path.startswith("self.") and path.count(".") == 1]
    return any(
        isinstance(value, ast.Name) and value.id in given and not _is_activation(value.id)
        for path in called
        for value, _ in of_attribute(path, constructor.syntax)
    )


def _is_activation(name: str) -> bool:
    return name.startswith(("act", "nonlinear", "non_linear"))


def _takes_one_row(facts: FileFacts, call: ModuleCall) -> bool:
    expression = expression_of(call.site.node) if isinstance(call.site.node, cst.Call) else None
    if not isinstance(expression, ast.Call):
        return False
    given = [*expression.args, *(keyword.value for keyword in expression.keywords)]
    rows = _Rows(facts, call)
    tensors = [one for one in given if not isinstance(one, ast.Constant)]
    return bool(tensors) and all(rows.is_one(one) for one in tensors)


@immutable()
class _Assignment:
    line: int
    target: ast.expr
    value: ast.expr


class _Rows:
    """What the assignments before a place tell of a value: is it one row of numbers?"""

    def __init__(self, facts: FileFacts, call: ModuleCall) -> None:
        self._program = facts.program
        self._callers = facts.callers
        self._line = call.site.span.start.row
        self._function = function = call.scope.function
        roots = [function.own_syntax] if function is not None else module_level(facts.program)
        self._assigned = [found for root in roots if root is not None for found in _assignments(root)]

    def is_one(self, expression: ast.expr) -> bool:
        """Is it one row, or what an environment gives for its state?"""
        return self._is_one(expression, self._line, _DEPTH)

    def _is_one(self, expression: ast.expr, line: int, depth: int) -> bool:
        if depth == 0:
            return False
        match expression:
            case ast.Name(id=name):
                last = self._last(name, line)
                if last is not None and isinstance(last.target, ast.Name):
                    return self._is_one(last.value, last.line, depth - 1) or self._is_state(name)
                return self._is_state(name)
            case ast.Call(func=ast.Attribute(attr="reshape" | "view"), args=[ast.Constant(value=1), _]):
                return True
            case ast.Call(func=ast.Attribute(value=inner, attr="unsqueeze"), args=[ast.Constant(value=0)]):
                return self._is_of_host(inner, line, depth - 1)
            case ast.Subscript(value=inner, slice=ast.Constant(value=None)):
                return self._is_of_host(inner, line, depth - 1)
            case ast.Subscript(value=inner, slice=ast.Tuple(elts=[ast.Constant(value=None), *_])):
                return self._is_of_host(inner, line, depth - 1)
            case ast.Call(func=func, args=[first, *_]):
                qualified = self._program.qualify(dotted(func))
                if qualified == "numpy.expand_dims":
                    return True
                if qualified in _FROM_HOST or qualified in _WRAPPING:
                    match first:
                        case ast.List(elts=[only]):
                            return not isinstance(only, ast.Starred)
                    return self._is_one(first, line, depth - 1)
        held = _unwrapped(expression)
        return held is not None and self._is_one(held, line, depth - 1)

    def _is_of_host(self, expression: ast.expr, line: int, depth: int) -> bool:
        """Was it made of numbers on the host, as a state is, and not computed?"""
        if depth == 0:
            return False
        match expression:
            case ast.Name(id=name):
                last = self._last(name, line)
                if last is None or not isinstance(last.target, ast.Name):
                    return self._is_state(name)
                return self._is_of_host(last.value, last.line, depth - 1)
            case ast.Call(func=func, args=[first, *_]):
                qualified = self._program.qualify(dotted(func))
                if qualified in _FROM_HOST:
                    return True
                if qualified in _WRAPPING:
                    return self._is_of_host(first, line, depth - 1)
        held = _unwrapped(expression)
        return held is not None and self._is_of_host(held, line, depth - 1)

    def _is_state(self, name: str) -> bool:
        """Is all that a name is assigned, here or by the callers, the state of an environment?"""
        if _is_state(name, self._assigned, frozenset()):
            return True
        function = self._function
        syntax = function.own_syntax if function is not None else None
        if function is None or syntax is None or self._callers is None:
            return False
        names = [one.arg for one in (*syntax.args.posonlyargs, *syntax.args.args)]
        if name not in names:
            return False
        place = names.index(name) - (function.cls is not None)
        sites = self._callers.calls(function)
        return bool(sites) and all(_is_given_a_state(site, place, name) for site in sites)

    def _last(self, name: str, line: int) -> _Assignment | None:
        before = [one for one in self._assigned if one.line < line and name in _bound(one.target)]
        return max(before, key=lambda one: one.line, default=None)


def _is_state(name: str, assigned: list[_Assignment], seen: frozenset[str]) -> bool:
    """Is all that a name is assigned what `reset()` or `step(action)` of an environment gives?"""
    found = [one for one in assigned if name in _bound(one.target)]
    steps = [one for one in found if _is_step(one)]
    rest = [one for one in found if one not in steps and not _is_call_of(one.value, "reset")]
    copies = [one.value.id for one in rest if isinstance(one.value, ast.Name) and isinstance(one.target, ast.Name)]
    if len(copies) < len(rest) or not found:
        return False
    states = [_is_state(copy, assigned, seen | {name}) for copy in copies if copy not in seen]
    return all(states) and (bool(steps) or any(states))


def _is_given_a_state(site: CallSite, place: int, name: str) -> bool:
    """Does a caller hand an environment's state on?"""
    roots: list[ast.stmt] = [site.syntax] if site.syntax is not None else module_level(site.program)
    call = next(
        (node for root in roots for node in ast.walk(root) if isinstance(node, ast.Call) and node.func is site.node),
        None,
    )
    if call is None or not site.called:
        return False
    keyword = next((one.value for one in call.keywords if one.arg == name), None)
    given = call.args[place] if place < len(call.args) else keyword
    if not isinstance(given, ast.Name):
        return False
    return _is_state(given.id, [found for root in roots for found in _assignments(root)], frozenset())


def _unwrapped(expression: ast.expr) -> ast.expr | None:
    """What a tensor was before `.to(device)`, `.float()` and the like."""
    match expression:
        case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name in _KEEPING:
            return inner
    return None


def _assignments(root: ast.AST) -> Iterator[_Assignment]:
    for node in ast.walk(root):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                match target, node.value:
                    case ast.Tuple(elts=targets), ast.Tuple(elts=values) if len(targets) == len(values):
                        pairs = zip(targets, values, strict=True)
                        yield from (_Assignment(node.lineno, one, value) for one, value in pairs)
                    case _:
                        yield _Assignment(node.lineno, target, node.value)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            yield _Assignment(node.lineno, node.target, node.value)


def _bound(target: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(target) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _is_step(one: _Assignment) -> bool:
    """`state, reward, done, info = env.step(action)`: four values, five since gymnasium, three of a wrapper."""
    several = isinstance(one.target, ast.Tuple) and len(one.target.elts) in (3, 4, 5)
    return several and _is_call_of(one.value, "step")


def _is_call_of(value: ast.expr, method: str) -> bool:
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == method
