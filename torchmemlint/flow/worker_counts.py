"""Loaders whose number of workers is a parameter's default: of a helper, a constructor, a `LightningDataModule`.

Asked once a file is analysed, of the loaders that are left without a number, and only where the parameter reaches the
loader as it is. All calls in the project count: where one gives the parameter a value, nothing is known. A default of
no workers counts only where there is a call that leaves it alone; another is what happens unless somebody says
otherwise. What the calls of one file leave at 0 is not 0 where those of another do not.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import libcst as cst

from torchmemlint.flow import configurations
from torchmemlint.flow.callers import Callers
from torchmemlint.flow.facts import FileFacts, Loader
from torchmemlint.flow.given import call_at
from torchmemlint.flow.program import ClassInfo, Function
from torchmemlint.flow.replacing import replace
from torchmemlint.flow.values import Constant, Known, Unknown
from torchmemlint.immutable import immutable
from torchmemlint.syntax.outline import defaults, dotted, dotted_text

_NAME, _POSITION = "num_workers", 5


@immutable()
class _Parameter:
    """A parameter with its default, and where it stands among those that a call gives by position."""

    owner: Function  # what is called: a function, or a stand-in for a class
    name: str
    default: int
    position: int  # -1: by keyword only


def settle(facts: FileFacts) -> None:
    """Give loaders the number of workers that they have by default."""
    for index, loader in enumerate(facts.built):
        value = loader.get(_NAME)
        open_question = isinstance(value, Unknown) or (isinstance(value, Constant) and not value.known)
        none = isinstance(value, Constant) and value.known and value.value == 0
        if not (open_question or none) or loader.unknown_keywords or facts.callers is None:
            continue
        parameter = _parameter(loader)
        if parameter is None or _left_alone(facts.callers, parameter) is not open_question:
            continue
        settled = Known("default", element=Constant(parameter.default, True)) if open_question else Unknown()
        arguments = tuple((name, settled if name == _NAME else given) for name, given in loader.arguments)
        facts.built[index] = replace(loader, arguments=arguments)


def _left_alone(callers: Callers, parameter: _Parameter) -> bool:
    """Does no call in the project say something else?"""
    sites = callers.calls(parameter.owner)
    if not sites:
        return parameter.default > 0
    return all((call := call_at(site)) is not None and not _gives(call, parameter) for site in sites)


def _gives(call: ast.Call, parameter: _Parameter) -> bool:
    """Does a call give the parameter another value than its default, or may it?"""
    given = [keyword.value for keyword in call.keywords if keyword.arg in (None, parameter.name)]
    given += call.args[parameter.position : parameter.position + 1] if parameter.position >= 0 else []
    given += [argument for argument in call.args if isinstance(argument, ast.Starred)]
    return any(not isinstance(value, ast.Constant) or value.value != parameter.default for value in given)


def _parameter(loader: Loader) -> _Parameter | None:
    """The parameter that a loader's number of workers is."""
    function = loader.scope.function
    match _expression(loader.site.node), function:
        case cst.Name(value=name), Function(syntax=ast.FunctionDef() as syntax):
            bound = any(
                isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) for n in ast.walk(syntax)
            )
            return None if bound else _of_function(function, syntax, name)
        case cst.Attribute(value=owner, attr=cst.Name(value=name)), Function(cls=ClassInfo() as cls):
            match dotted_text(owner):
                case "self":
                    return _of_attribute(cls, name)
                case "self.hparams":
                    return _of_hyperparameter(cls, name)
    return None


def _expression(call: cst.CSTNode) -> cst.BaseExpression | None:
    """What the loader's call has for the number of workers."""
    if not isinstance(call, cst.Call) or any(argument.star for argument in call.args):
        return None
    for index, argument in enumerate(call.args):
        if argument.keyword.value == _NAME if argument.keyword is not None else index == _POSITION:
            return argument.value
    return None


def _of_function(function: Function, syntax: ast.FunctionDef, name: str) -> _Parameter | None:
    if function.parent is not None:
        return None
    bound = function.cls is not None and "staticmethod" not in function.decorator_texts()
    return _with_default(function, syntax, name, 1 if bound else 0)


def _with_default(owner: Function, syntax: ast.FunctionDef, name: str, skipped: int) -> _Parameter | None:
    given = [*syntax.args.posonlyargs, *syntax.args.args]
    match defaults(syntax.args).get(name):
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            position = next((index - skipped for index, one in enumerate(given) if one.arg == name), -1)
            return _Parameter(owner, name, number, position)
    return None


def _of_attribute(cls: ClassInfo, attribute: str) -> _Parameter | None:
    """`self.num_workers`, assigned once, in the constructor, from its parameter; or the field of a dataclass."""
    values = list(_assigned(cls, attribute))
    if not values and configurations.is_dataclass(cls):
        return _of_field(cls, attribute)
    match values:
        case [("__init__", ast.Name(id=name))]:
            return _of_constructor(cls, name)
    return None


def _of_hyperparameter(cls: ClassInfo, name: str) -> _Parameter | None:
    """`self.hparams.num_workers`, after `self.save_hyperparameters()`."""
    init = cls.method("__init__")
    saves = init is not None and "self.save_hyperparameters" in init.outline.called
    return _of_constructor(cls, name) if saves else None


def _of_constructor(cls: ClassInfo, name: str) -> _Parameter | None:
    init = cls.method("__init__")
    if init is None or not isinstance(init.syntax, ast.FunctionDef):
        return None
    rebound = any(
        isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) for n in ast.walk(init.syntax)
    )
    return None if rebound else _with_default(_called_as(cls, init), init.syntax, name, 1)


def _of_field(cls: ClassInfo, name: str) -> _Parameter | None:
    fields = configurations.fields(cls)
    match fields.get(name):
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            return _Parameter(_called_as(cls, None), name, number, list(fields).index(name))
    return None


def _called_as(cls: ClassInfo, init: Function | None) -> Function:
    """A class as a function of its name, for who calls it."""
    return Function(cls.name, cls.piece, cls.program, syntax=init.syntax if init is not None else None)


def _assigned(cls: ClassInfo, attribute: str) -> Iterator[tuple[str, ast.expr | None]]:
    """What methods of a class, and of its bases in view, assign to an attribute of the object."""
    for ancestor in cls.ancestors():
        for method in ancestor.methods.values():
            if method.syntax is None or attribute not in method.outline.names:
                continue
            for node in ast.walk(method.syntax):
                match node:
                    case ast.Assign(targets=targets, value=value):
                        pass
                    case ast.AnnAssign(target=target, value=value) | ast.AugAssign(target=target, value=value):
                        targets = [target]
                    case _:
                        continue
                if any(dotted(t) == f"self.{attribute}" for t in targets if isinstance(t, ast.Attribute)):
                    yield method.name, value
