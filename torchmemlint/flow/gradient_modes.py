"""Is autograd recording? Every route by which code turns it on and off."""

from __future__ import annotations

import ast

import libcst as cst

from torchmemlint.flow.arguments import Arguments
from torchmemlint.flow.interpreter import Interpreter
from torchmemlint.flow.program import ClassInfo, Function, Program, decorator_name
from torchmemlint.flow.values import (
    ClassValue,
    Constant,
    External,
    FunctionValue,
    GradMode,
    Instance,
    Known,
    Mode,
    Unknown,
    Value,
)
from torchmemlint.knowledge import torch_api
from torchmemlint.knowledge.contracts import Contracts
from torchmemlint.syntax.outline import defaults, dotted


def mode_of_external(contracts: Contracts, qualified: str) -> Mode | None:
    """The mode that a library name sets when called, None where it sets none."""
    if qualified in contracts.off:
        return Mode.OFF
    if qualified in contracts.on:
        return Mode.ON
    return None


def called(it: Interpreter, node: cst.Call, qualified: str, arguments: Arguments) -> Value | None:
    """`torch.no_grad()`, `torch.set_grad_enabled(flag)`, ...; None for other names."""
    if qualified in it.contracts.setters:
        mode = _from_flag(arguments.get("0", "mode"))
        it.state.mode = mode
        return GradMode(mode, True)
    mode_or_none = mode_of_external(it.contracts, qualified)
    if mode_or_none is None:
        return None
    first = arguments.get("0", "mode", "func", "orig_func")
    if isinstance(first, FunctionValue):
        return first  # `no_grad(function)`: the caller's mode is replaced when it is called
    mode = mode_or_none
    if first is not None:
        flag = _from_flag(first)
        mode = Mode.OFF if flag is Mode.ON else Mode.ON if flag is Mode.OFF else Mode.UNKNOWN
    return GradMode(mode, True, it.site(node))


def _from_flag(value: Value | None) -> Mode:
    if isinstance(value, Constant) and value.known:
        return Mode.ON if value.value else Mode.OFF
    return Mode.UNKNOWN


def applied(arguments: Arguments) -> Value:
    """`torch.no_grad()(function)`, or a stored mode object called: what it is given comes back, decorated."""
    first = arguments.get("0")
    return first if isinstance(first, FunctionValue) else Unknown()


def enter(it: Interpreter, value: Value, item: cst.BaseExpression) -> None:
    """A `with` item (or `enter_context`) takes effect."""
    mode = mode_in_context(it, value, item)
    if mode is Mode.UNKNOWN and it.state.mode is Mode.OFF:
        return  # hardly a context turns gradients on again
    if mode is not None:
        it.state.mode = mode


def mode_in_context(it: Interpreter, value: Value, item: cst.BaseExpression) -> Mode | None:
    """The mode inside `with value:`; None where it stays as it is."""
    match value:
        case GradMode(mode=mode):
            return mode
        case External(qualified=qualified):
            mode_or_none = mode_of_external(it.contracts, qualified)
            if mode_or_none is not None:
                return Mode.UNKNOWN  # raises when it runs
            return None if qualified in it.contracts.neutral else Mode.UNKNOWN
        case Instance(cls=cls):
            return mode_of_class(it, cls)
        case Known(role="context manager"):
            return it.context_modes.get(value.oid, Mode.UNKNOWN)
        case Known(role="object", qualified=qualified):
            return None if qualified in it.contracts.neutral else Mode.UNKNOWN
        case Known():
            return None
        case Unknown():
            return None if _neutral_syntax(it, item) else Mode.UNKNOWN
        case _:
            return None if _neutral_syntax(it, item) else Mode.UNKNOWN


def _neutral_syntax(it: Interpreter, item: cst.BaseExpression) -> bool:
    """`with accelerator.accumulate(model):`, `with open(path):` and other contexts that have no say in gradients."""
    if not isinstance(item, cst.Call):
        return False
    func = item.func
    if isinstance(func, cst.Attribute):
        return it.contracts.neutral.has_method(func.attr.value)
    return isinstance(func, cst.Name) and func.value in ("open", "tqdm", "timer", "Timer", "autocast", "Progress")


def mode_of_class(it: Interpreter, cls: ClassInfo) -> Mode | None:
    """The mode that a project's own context manager sets."""
    enter_method = cls.method("__enter__")
    if enter_method is None:
        return None
    mentioned = {cls.program.qualify(path) for ancestor in cls.ancestors() for path in ancestor.outline.called}
    if any(name in it.contracts.off for name in mentioned):
        return Mode.OFF
    if any(name in it.contracts.setters or name in it.contracts.on for name in mentioned):
        return Mode.UNKNOWN
    bases = cls.external_bases()
    if any(base in it.contracts.off for base in bases):
        return Mode.OFF
    return (
        None
        if all(base in it.contracts.neutral or base in ("object", "ContextDecorator") for base in bases)
        else Mode.UNKNOWN
    )


def off_by_default(contracts: Contracts, function: Function, arguments: Arguments) -> bool:
    """Does a function turn gradients off, which it is not asked not to: `def forward(self, x, inference=True)`?"""
    syntax = function.syntax
    if syntax is None or function.outline.names.isdisjoint(torch_api.TURNING_GRADIENTS_OFF):
        return False
    switches = {name for name, value in defaults(syntax.args).items() if getattr(value, "value", None) is True}
    switches -= {item.name for item in arguments.items}
    return any(
        isinstance(statement, ast.If)
        and isinstance(statement.test, ast.Name)
        and statement.test.id in switches
        and any(_turns_off(contracts, function.program, inner) for inner in statement.body)
        for statement in syntax.body
    )


def _turns_off(contracts: Contracts, program: Program, statement: ast.stmt) -> bool:
    items = statement.items if isinstance(statement, ast.With) else []
    calls = [item.context_expr for item in items if isinstance(item.context_expr, ast.Call)]
    return any(mode_of_external(contracts, program.qualify(dotted(call.func))) is Mode.OFF for call in calls)


def mode_of_function(it: Interpreter, function: Function, mode: Mode) -> Mode:
    """The mode that a function's body starts in when it is called in `mode`: its decorators decide."""
    left = _left_by_constructor(it.contracts, function)
    mode = mode if left is None else left
    if not function.is_decorated:
        return mode
    for decorator in function.node.decorators:
        name = decorator_name(decorator)
        qualified = function.program.qualify(name)
        set_mode = mode_of_external(it.contracts, qualified)
        if set_mode is not None:
            if isinstance(decorator.decorator, cst.Call) and decorator.decorator.args:
                return Mode.UNKNOWN
            return set_mode
        if qualified in it.contracts.setters:
            return _decorator_flag(decorator)
        value = _decorating(it, function.program, name)
        found = _project_decorator(it, value)
        if found is not None:
            mode = found
        elif not (isinstance(value, FunctionValue) or _is_neutral_decorator(it, function.program, name)):
            mode = Mode.UNKNOWN
    return mode


def _left_by_constructor(contracts: Contracts, function: Function) -> Mode | None:
    """Where a constructor turns gradients off for good (`torch.set_grad_enabled(False)`), the mode of its methods."""
    if function.cls is None:
        return None
    constructor = function.cls.method("__init__")
    if constructor is None or function is constructor or "set_grad_enabled" not in constructor.outline.calls:
        return None
    body = constructor.syntax.body if constructor.syntax is not None else ()
    for name, statement in function.cls.switched_off():
        if name in contracts.setters:
            return Mode.OFF if statement in body else Mode.UNKNOWN
    return None


def _decorator_flag(decorator: cst.Decorator) -> Mode:
    match decorator.decorator:
        case cst.Call(args=[cst.Arg(value=cst.Name(value="False"))]):
            return Mode.OFF
        case cst.Call(args=[cst.Arg(value=cst.Name(value="True"))]):
            return Mode.ON
        case _:
            return Mode.UNKNOWN


def _decorating(it: Interpreter, program: Program, name: str) -> Value | None:
    """What a decorator's name stands for: a global, a function of a module, a method of a class (`Timers.measured`)."""
    owner, _, last = name.rpartition(".")
    if not owner:
        return it.lookup_global(name, program) if name else None
    value = it.lookup_global(owner, program) if "." not in owner else it.external(program.qualify(owner), program)
    match value:
        case ClassValue(cls=cls):
            method = cls.method(last)
            return FunctionValue(method) if method is not None else None
        case External():
            return it.external(program.qualify(name), program)
    return None


def _project_decorator(it: Interpreter, value: Value | None) -> Mode | None:
    """The mode set by a decorator of the project; None where it sets none or is not in view."""
    match value:
        case FunctionValue(function=found) | ClassValue(cls=found):
            called = called_by(found)
        case GradMode(mode=mode):
            return mode
        case Instance(cls=cls):
            return mode_of_class(it, cls)
        case _:
            return None
    if any(name in it.contracts.off for name in called):
        return Mode.OFF
    if any(name in it.contracts.setters for name in called):
        return Mode.UNKNOWN
    return None


def called_by(decorator: Function | ClassInfo) -> set[str]:
    """The qualified names that it calls, also by choice: `(torch.inference_mode if NEW else torch.no_grad)()`."""
    chosen = (n.func for n in decorator.outline.nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.IfExp))
    among = {dotted(branch) for choice in chosen for branch in (choice.body, choice.orelse)}
    return {decorator.program.qualify(path) for path in decorator.outline.called | among if path}


def _is_neutral_decorator(it: Interpreter, program: Program, name: str) -> bool:
    if not name:
        return False
    if isinstance(it.lookup_global(name.partition(".")[0], program), FunctionValue):
        return True  # an attribute that a decorator of the project has given to a function: `@main.result`
    if name.endswith((".setter", ".getter", ".deleter", ".command", ".option", ".register", ".fixture", ".group")):
        return True
    return program.qualify(name) in it.contracts.neutral


def runs_inference(function: Function) -> bool:
    """Is this method inference by its framework's contract, and its own to guard?"""
    return _overrides(function, "inference")


def guarded_by_framework(function: Function) -> bool:
    """Does the framework of the class call this method with gradients off?"""
    return _overrides(function, "called-without-gradients")


def trained_by_framework(function: Function) -> bool:
    """Does the framework of the class call this method with gradients on, and differentiate what it returns?"""
    return _overrides(function, "called-with-gradients")


def _overrides(function: Function, term: str) -> bool:
    cls = function.cls
    if cls is None or function.name not in cls.program.contracts.names(term).last_parts:
        return False
    return cls.program.contracts.overrides(term, function.name, cls.base_names())
