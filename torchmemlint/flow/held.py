"""Modules that a trainer holds and does not train: reference policies, teachers, reward models.

Source: transformers' `Trainer.create_optimizer` optimises the parameters of `self.model`, the first argument of its
constructor; what else a subclass keeps in attributes gets no optimizer.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import libcst as cst

from torchmemlint.flow import annotated, gradient_modes
from torchmemlint.flow.arguments import Arguments
from torchmemlint.flow.facts import HeldCall
from torchmemlint.flow.interpreter import Interpreter
from torchmemlint.flow.program import ClassInfo, Function
from torchmemlint.flow.values import Constant, Flag, Graph, Instance, Mode, ModuleValue, Step, Unknown, Value
from torchmemlint.immutable import immutable
from torchmemlint.syntax.outline import dotted, dotted_text
from torchmemlint.syntax.source_module import Site
from torchmemlint.syntax.text import shortened, text_of
from torchmemlint.syntax.walking import children, inside

_TRAINED = frozenset({"model", "model_wrapped"})
_OPTIMISING = ("create_optimizer", "create_optimizer_and_scheduler", "train")
# Methods that show that its parameters are frozen, trained or copied.
_TELLING = frozenset(
    "parameters named_parameters get_parameter modules named_modules train requires_grad_ state_dict freeze".split()
)
_FREEZING = ("requires_grad", "freeze", "unfreeze")
_ASKING = frozenset({"isinstance", "hasattr", "getattr", "type", "id", "print", "len"})
# Functions and methods of libraries that leave it as it was what of a module trains.
_LEAVING = frozenset(
    "to cuda cpu half float bfloat16 eval prepare prepare_model unwrap_model compile DataParallel "
    "DistributedDataParallel FullyShardedDataParallel add_callback".split()
)
_MAKING = frozenset({"from_pretrained", "deepcopy"})
_PER_BATCH = 1  # the position of the trained model among the parameters of a trainer's steps, `self` first


@immutable()
class _Source:
    """Where a constructor puts a module into an attribute, and whether an annotation says that it is one."""

    site: Site
    annotated: bool


def read(it: Interpreter, owner: ModuleValue | Instance, name: str, value: Value | None) -> ModuleValue | None:
    """The module that `self.name` of a trainer is, where nobody trains it; None for anything else."""
    if not isinstance(owner, Instance) or not isinstance(value, ModuleValue | Unknown | Constant | None):
        return None
    source = _found(it, owner.cls, name)
    if source is None:
        return None
    if not isinstance(value, ModuleValue):
        if not source.annotated or (isinstance(value, Constant) and value.value is not None):
            return None
        why = Step(source.site, f"`{name}` is annotated as an nn.Module")
        value = ModuleValue(it.oid("held", owner.cls.oid, name), why=why, made=source.site)
    it.held[value.oid] = (f"self.{name}", source.site)
    return value


def ran(it: Interpreter, node: cst.Call, module: ModuleValue, arguments: Arguments, inputs: Graph) -> None:
    """A forward pass, perhaps of a module that a trainer holds and does not train."""
    held = it.held.get(module.oid)
    if held is None or it.state.mode is not Mode.ON or inputs is Graph.LIVE:
        return
    if isinstance(it.heap_value(module, "frozen"), Flag) or _may_carry(it, arguments):
        return
    _record(it, node, module.oid, handed=False)


def handed_on(it: Interpreter, node: cst.CSTNode, before: int, arguments: Arguments) -> None:
    """A project function has run the held modules that it was given: its call is where gradients are to be off."""
    inner = it.held_calls[before:]
    given = {value.oid for value in arguments.values if isinstance(value, ModuleValue)} & it.held.keys()
    if not inner or not given or not isinstance(node, cst.Call):
        return
    it.held_calls[before:] = [call for call in inner if call.module not in given]
    safe = it.state.mode is Mode.ON and not _may_carry(it, arguments)
    for oid in sorted(given & {call.module for call in inner}) if safe else ():
        _record(it, node, oid, handed=True)


def _record(it: Interpreter, node: cst.Call, oid: int, *, handed: bool) -> None:
    path, stored = it.held[oid]
    callee = shortened(text_of(node.func), 40)
    root = (it.frames[:1] or [it.frame])[0].function
    it.held_calls.append(HeldCall(it.site(node), it.scope, callee, path, oid, stored, handed, root))


# -- what goes into it -----------------------------------------------------------------------------------------------


def _may_carry(it: Interpreter, arguments: Arguments) -> bool:
    """Could an argument hang on what the trained model has computed?"""
    origins = frozenset(origin for value in arguments.values for origin in it.deep_origins(value))
    calls = [origin.site.node for origin in origins if isinstance(origin.site.node, cst.Call)]
    if not calls:
        return False
    names = _bound_to_trained(it)
    return any(_runs(call, names) for call in calls)


def _bound_to_trained(it: Interpreter) -> set[str]:
    """Names and attributes in the running functions that may stand for the trained model, or for what it computed."""
    names = {f"self.{attribute}" for attribute in _TRAINED}
    for frame in (*it.frames, it.frame):
        function = frame.function
        if function is None:
            continue
        parameters = [p.name.value for p in (*function.node.params.posonly_params, *function.node.params.params)]
        names.update(name for name in parameters if name in function.outline.called)
        if gradient_modes.trained_by_framework(function):
            names.update(parameters[_PER_BATCH : _PER_BATCH + 1])
        assigned = it.assigned_calls.get(function)
        if assigned is None:
            assigned = it.assigned_calls[function] = list(_assigned(function))
        for _ in range(2):
            for target, called in assigned:
                if any(_runs(call, names) for call in called):
                    names.add(target)
    return names


def _assigned(function: Function) -> Iterator[tuple[str, list[cst.Call]]]:
    """The names that a function assigns to, each with the calls in what it assigns."""
    for node in inside(function.node):
        if type(node) is cst.Assign:
            calls = _calls(node.value)
            names = (name for target in node.targets for name in inside(target.target) if type(name) is cst.Name)
            yield from ((name.value, calls) for name in names)
        elif type(node) is cst.WithItem and node.asname is not None and isinstance(node.asname.name, cst.Name):
            yield node.asname.name.value, _calls(node.item)


def _calls(node: cst.CSTNode) -> list[cst.Call]:
    return [below for below in inside(node) if type(below) is cst.Call]


def _runs(call: cst.Call, names: set[str]) -> bool:
    """Is something of these names called, or handed over as it is?"""
    callee = dotted_text(call.func)
    if any(callee == name or callee.startswith(f"{name}.") for name in names):
        return True
    return any(dotted_text(argument.value) in names for argument in call.args)


# -- which modules ---------------------------------------------------------------------------------------------------


def _found(it: Interpreter, cls: ClassInfo, attribute: str) -> _Source | None:
    """Where a trainer keeps a module that nobody trains in this attribute."""
    key = (cls.oid, attribute)
    if key not in it.held_by:
        it.held_by[key] = _find(it, cls, attribute) if _chooses_model(it, cls) else None
    source: _Source | None = it.held_by[key]
    return source


def _chooses_model(it: Interpreter, cls: ClassInfo) -> bool:
    """Is it a trainer that leaves it to its library that the parameters of `model` are optimised?"""
    key = (cls.oid, "")
    if key not in it.held_by:
        own = any(name in ancestor.methods for ancestor in cls.ancestors() for name in _OPTIMISING)
        it.held_by[key] = not own and _is_trainer(cls)
    return bool(it.held_by[key])


def _find(it: Interpreter, cls: ClassInfo, attribute: str) -> _Source | None:
    if attribute in _TRAINED:
        return None
    for ancestor in cls.ancestors():
        constructor = ancestor.methods.get("__init__")
        if constructor is not None and _assigns(constructor, f"self.{attribute}"):
            return _source(it, cls, constructor, attribute)
    return None


def _assigns(function: Function, path: str) -> bool:
    """Does it assign this attribute? Asked of many, and so of the standard parser's tree."""
    if path.removeprefix("self.") not in function.outline.names:
        return False
    assigned = (node for node in function.outline.nodes if isinstance(node, ast.Assign))
    return any(dotted(t) == path for node in assigned for t in node.targets if isinstance(t, ast.Attribute))


def _is_trainer(cls: ClassInfo) -> bool:
    """Is it a Trainer, whose `compute_loss` is called (other frameworks choose otherwise what is optimised)?"""
    # A Lightning module's attributes are parts of it, and trained with it.
    return not cls.is_module and cls.program.contracts.overrides(
        "called-with-gradients", "compute_loss", cls.base_names()
    )


def _source(it: Interpreter, cls: ClassInfo, constructor: Function, attribute: str) -> _Source | None:
    """Where the constructor stores a module that it is given or loads, and that nobody freezes or trains."""
    path = f"self.{attribute}"
    if cls.methods_called_on(path) & _TELLING or not _assigned_in_constructors_only(cls, path):
        return None
    params = constructor.node.params
    parameters = {p.name.value: p for p in (*params.posonly_params, *params.params, *params.kwonly_params)}
    if constructor not in it.held_assigns:
        it.held_assigns[constructor] = [node for node in inside(constructor.node) if isinstance(node, cst.Assign)]
    assigns = it.held_assigns[constructor]
    given = {
        assign.value.value
        for assign in _to(assigns, {path})
        if isinstance(assign.value, cst.Name) and assign.value.value in parameters
    }
    names = {path, *given}
    if any(constructor.outline.methods.get(name, set()) & _TELLING for name in given):
        return None
    stored: Site | None = None
    for assign in _to(assigns, names):
        origin = _kind(constructor, assign.value, names)
        if origin is None:
            return None
        if origin and (stored is None or isinstance(assign.value, cst.Name)):
            stored = Site(constructor.piece, assign)
    if stored is None or _given_away(constructor, names):
        return None
    shown = any(annotated.is_module(constructor.program, parameters[name]) for name in given)
    return _Source(stored, shown)


def _assigned_in_constructors_only(cls: ClassInfo, path: str) -> bool:
    methods = (method for ancestor in cls.ancestors() for method in ancestor.methods.values())
    return not any(_assigns(method, path) for method in methods if method.name != "__init__")


def _to(assigns: list[cst.Assign], paths: set[str]) -> Iterator[cst.Assign]:
    for assign in assigns:
        if any(dotted_text(target.target) in paths for target in assign.targets):
            yield assign


def _kind(constructor: Function, value: cst.BaseExpression, names: set[str]) -> bool | None:
    """True for a module from elsewhere, False for None and for itself, wrapped; None where it cannot be told."""
    match value:
        case cst.Name(value="None"):
            return False
        case cst.Name(value=name):
            return True if name in names else None
        case cst.IfExp(body=body, orelse=orelse):
            kinds = [_kind(constructor, part, names) for part in (body, orelse)]
            return None if None in kinds else any(kinds)
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=method))) if method in _LEAVING:
            if dotted_text(owner) in names or isinstance(owner, cst.Call):
                return _kind(constructor, owner, names) if isinstance(owner, cst.Call) else False
            return False if list(_mentions(value, names)) else None
        case cst.Call(func=func):
            if list(_mentions(value, names)):
                return False  # who is called is asked in `_given_away`
            if text_of(func).rpartition(".")[2] in _MAKING:
                return True
            callee = _callee(constructor, func)
            return isinstance(callee, Function) or None if callee is not None and not _freezes(callee) else None
    return None


def _given_away(constructor: Function, names: set[str]) -> bool:
    """Does the constructor hand the module to somebody who may freeze or train it, or give it a second name?"""
    for node in inside(constructor.node):
        match node:
            case cst.Assign(targets=[target], value=value) if dotted_text(target.target) in names:
                pass
            case cst.Expr(value=value):
                pass
            case cst.Assign(value=value) | cst.AnnAssign(value=cst.BaseExpression() as value):
                if list(_mentions(value, names)):
                    return True
                continue
            case cst.For(iter=value) | cst.WithItem(item=value) | cst.Return(value=cst.BaseExpression() as value):
                if list(_mentions(value, names)):
                    return True
                continue
            case _:
                continue
        if not all(_leaves_alone(constructor, call) for calls in _mentions(value, names) for call in calls):
            return True
        if any(isinstance(part, cst.Element | cst.DictElement) and _holds(part, names) for part in inside(value)):
            return True
    return False


def _holds(element: cst.CSTNode, names: set[str]) -> bool:
    return any(dotted_text(child) in names for child in element.children)


def _mentions(node: cst.CSTNode, names: set[str], calls: tuple[cst.Call, ...] = ()) -> Iterator[tuple[cst.Call, ...]]:
    """The calls around each mention of the module itself, and not of an attribute of it."""
    if isinstance(node, cst.Name | cst.Attribute) and dotted_text(node) in names:
        yield calls
        return
    match node:
        case cst.Comparison():
            return
        case cst.Call(func=cst.Name(value=name)) if name in _ASKING:
            return
        case cst.Call(func=func, args=args):
            if isinstance(func, cst.Attribute) and not dotted_text(func):
                yield from _mentions(func.value, names, calls)
            for argument in args:
                yield from _mentions(argument.value, names, (*calls, node))
        case cst.Attribute():
            if not dotted_text(node):
                yield from _mentions(node.value, names, calls)
        case _:
            for child in children(node):
                yield from _mentions(child, names, calls)


def _leaves_alone(constructor: Function, call: cst.Call) -> bool:
    """Does who is called leave it to the module's owner what is trained?"""
    callee = _callee(constructor, call.func)
    if callee is not None:
        return not _freezes(callee)
    return text_of(call.func).rpartition(".")[2] in _LEAVING


def _callee(constructor: Function, func: cst.BaseExpression) -> Function | ClassInfo | None:
    """The function or class of the project that is called."""
    path = dotted_text(func)
    if path.startswith("self.") and constructor.cls is not None:
        return constructor.cls.method(path.removeprefix("self."))
    program = constructor.program
    if not path or path == "super":
        return None
    return program.find_function(path) or program.find_class(path) or program.resolve(program.qualify(path))


def _freezes(callee: Function | ClassInfo, depth: int = 2) -> bool:
    """Does it, or a function of the project that it calls, mention what freezes parameters?"""
    if any(word in name for name in (callee.name, *callee.outline.names) for word in _FREEZING):
        return True
    if depth == 0 or isinstance(callee, ClassInfo):
        return False
    program = callee.program
    inner = (program.find_function(path) or program.resolve(program.qualify(path)) for path in callee.outline.called)
    return any(isinstance(function, Function) and _freezes(function, depth - 1) for function in inner)
