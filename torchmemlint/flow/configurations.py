"""Objects that hold settings: namespaces, OmegaConf and its like, dataclasses, click options.

What a literal, a default or an option says is known; what comes from a file, a command line or a caller out of view is
not. A default that whoever runs the program can change is a `Known("default")`.
"""

from __future__ import annotations

import ast

import libcst as cst

from torchmemlint.flow import containers
from torchmemlint.flow.arguments import Arguments
from torchmemlint.flow.interpreter import Interpreter
from torchmemlint.flow.program import ClassInfo, Function
from torchmemlint.flow.values import NUMBER, ClassValue, Constant, Container, Instance, Known, Unknown, Value
from torchmemlint.syntax.outline import dotted

# Mappings whose entries are attributes as well, made from a mapping or from keywords.
NAMESPACES = frozenset(
    "types.SimpleNamespace argparse.Namespace easydict.EasyDict addict.Dict munch.Munch munch.munchify box.Box "
    "ml_collections.ConfigDict ml_collections.config_dict.ConfigDict attrdict.AttrDict "
    "omegaconf.OmegaConf.create omegaconf.DictConfig omegaconf.OmegaConf.structured".split()
)
_MAX_FIELDS = 200


def namespace(it: Interpreter, node: cst.Call, arguments: Arguments) -> Value:
    """`SimpleNamespace(workers=4)`, `OmegaConf.create({"workers": 4})`."""
    first = arguments.get("0")
    if isinstance(first, Instance) and is_dataclass(first.cls):
        return first
    if isinstance(first, ClassValue) and is_dataclass(first.cls):
        made = Instance(it.oid(node, it.frame.path), first.cls, it.frame.loops, it.site(node))
        fill(it, made.oid, first.cls, Arguments([]))
        return made
    if first is not None and not isinstance(first, Container):
        return Unknown()
    pairs = [(a.name, a.node, a.value) for a in arguments.items if not a.name.isdigit()]
    merged = [first] if first is not None else []
    named = [("*" if name in ("*", "**") else name, at, value) for name, at, value in pairs]
    made_of = containers.dictionary(it, node, named, merged, False)
    return Container(made_of.oid, "dict", made_of.loops, made=made_of.made, attributes=True)


def parsed(it: Interpreter, node: cst.Call, arguments: Arguments) -> Value:
    """`vars(args)`: what an object of parsed arguments, or a namespace, holds."""
    return mapping(it, node, arguments.get("0"))


def mapping(it: Interpreter, node: cst.BaseExpression, value: Value | None) -> Value:
    """The same of a value: `args.__dict__`."""
    if isinstance(value, Container):
        return value
    names = it.parser_arguments.get(value.oid, ()) if isinstance(value, Known) and value.role == "arguments" else ()
    held = {name: it.heap_value(value, name) for name in sorted(names)} if value is not None else {}
    pairs = [(name, node, entry) for name, entry in held.items() if entry is not None]
    return containers.dictionary(it, node, pairs, [], False) if pairs else Unknown()


# -- dataclasses -----------------------------------------------------------------------------------------------------


def is_dataclass(cls: ClassInfo) -> bool:
    """Does its decorator write its constructor?"""
    if cls.method("__init__") is not None or not isinstance(cls.piece.outline, ast.ClassDef) or cls.local is not None:
        return False
    names = (dotted(d.func if isinstance(d, ast.Call) else d) for d in cls.piece.outline.decorator_list)
    return any(name.rpartition(".")[2] in ("dataclass", "define", "frozen") for name in names)


def fill(it: Interpreter, oid: int, cls: ClassInfo, arguments: Arguments) -> None:
    """The fields of a new object: what the call gives, else the defaults, which others may replace later."""
    known = fields(cls)
    for name, default in known.items():
        value = _constant(default)
        if value is not None:
            _put(it, (oid, name), Known("default", element=value))
    order = list(known)
    for argument in arguments.items:
        if argument.name.isdigit() and int(argument.name) < len(order):
            _put(it, (oid, order[int(argument.name)]), argument.value)
        _put(it, (oid, argument.name), argument.value)
    if arguments.unknown_keywords or arguments.unknown_positional:
        for name in order:
            _put(it, (oid, name), Unknown())


def _put(it: Interpreter, slot: tuple[int, str], value: Value) -> None:
    """Settings are the same for whoever is handed the object: a walk of another function finds them, too."""
    it.state.heap[slot] = value
    if slot not in it.lasting_heap and isinstance(value, Constant | Known):
        it.lasting_heap[slot] = value
    replaced(it, slot, value)


def replaced(it: Interpreter, slot: tuple[int, str], value: Value) -> None:
    """A field is assigned: which of its values a walk of another function meets is not known."""
    if slot in it.lasting_heap and it.lasting_heap[slot] != value:
        it.lasting_heap[slot] = Unknown()


def fields(cls: ClassInfo) -> dict[str, ast.expr | None]:
    """The fields of a dataclass and its bases in view, in order, with their defaults."""
    found: dict[str, ast.expr | None] = {}
    for ancestor in reversed(list(cls.ancestors())):
        body = ancestor.piece.outline.body if isinstance(ancestor.piece.outline, ast.ClassDef) else []
        for statement in body[:_MAX_FIELDS]:
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                found[statement.target.id] = _default(statement.value)
    return found


def _default(value: ast.expr | None) -> ast.expr | None:
    """`field(default=4)` is 4."""
    if isinstance(value, ast.Call) and dotted(value.func).rpartition(".")[2] in ("field", "Field"):
        return next((keyword.value for keyword in value.keywords if keyword.arg == "default"), None)
    return value


def _constant(node: ast.expr | None) -> Constant | None:
    return Constant(node.value, True) if isinstance(node, ast.Constant) else None


# -- click -----------------------------------------------------------------------------------------------------------


def option(function: Function, parameter: str) -> Value | None:
    """What a command's parameter is unless the user says otherwise: `@click.option("--workers", default=4)`."""
    for decorator in function.syntax.decorator_list if function.syntax is not None else ():
        if not isinstance(decorator, ast.Call):
            continue
        qualified = function.program.qualify(dotted(decorator.func))
        if not qualified.startswith(("click.", "rich_click.")) or not qualified.endswith(".option"):
            continue
        if _parameter_of(decorator) == parameter:
            default = next((k.value for k in decorator.keywords if k.arg == "default"), None)
            value = _constant(default)
            return NUMBER if value is None else Known("default", element=value)
    return None


def _parameter_of(decorator: ast.Call) -> str:
    """The parameter that an option fills: its one name without dashes, else the first long flag."""
    given = [a.value for a in decorator.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    plain = [name for name in given if name.isidentifier()]
    flags = [name.split("/")[0] for name in given if name.startswith("--")] or given
    return plain[0] if plain else flags[0].lstrip("-").replace("-", "_").lower() if flags else ""
