"""Data loaders, and the command-line arguments that configure them."""

from __future__ import annotations

from dataclasses import replace

import libcst as cst

from torchmemlint.flow.arguments import Arguments
from torchmemlint.flow.facts import Loader
from torchmemlint.flow.interpreter import Interpreter
from torchmemlint.flow.values import NUMBER, Constant, Container, Known, Unknown, Value

_POSITIONAL = ("dataset", "batch_size", "shuffle", "sampler", "batch_sampler", "num_workers", "collate_fn", "pin_memory")


def build(it: Interpreter, node: cst.Call, qualified: str, arguments: Arguments) -> Value:
    """`DataLoader(...)`: a fact with the arguments by name."""
    named: list[tuple[str, Value]] = []
    for name, value in arguments.pairs():
        if name.isdigit():
            if int(name) < len(_POSITIONAL):
                named.append((_POSITIONAL[int(name)], value))
        elif name not in ("*", "**"):
            named.append((name, value))
    oid = it.oid(node, it.frame.path)
    made = it.site(node)
    if it.recording:
        dataset = next((value for name, value in named if name == "dataset"), None)
        it.facts.loaders.append(
            Loader(
                made,
                it.scope,
                tuple(named),
                arguments.unknown_keywords or arguments.unknown_positional,
                dataset,
                oid,
            )
        )
    return Known("loader", oid, qualified, made, tuple(named), it.frame.loops)


def add_argument(it: Interpreter, parser: Known, arguments: Arguments) -> None:
    """`parser.add_argument("--workers", default=4)`: what `args.workers` is unless the user says otherwise."""
    flags = [
        a.value.value
        for a in arguments.items
        if a.name.isdigit() and isinstance(a.value, Constant) and isinstance(a.value.value, str)
    ]
    if not flags:
        return
    long = next((flag for flag in flags if flag.startswith("--")), flags[0])
    destination = arguments.get("dest")
    name = long.lstrip("-").replace("-", "_")
    if isinstance(destination, Constant) and isinstance(destination.value, str):
        name = destination.value
    default = arguments.get("default")
    action = arguments.get("action")
    if isinstance(action, Constant) and action.value == "store_true":
        default = Constant(False, True)
    value = default if isinstance(default, Constant) else NUMBER if default is None else Unknown()
    it.state.heap[(parser.oid, f"argument {name}")] = value
    it.parser_arguments.setdefault(parser.oid, set()).add(name)


def parsed_arguments(it: Interpreter, node: cst.Call, parser: Known, method: str) -> Value:
    """`parser.parse_args()`: an object whose attributes are the defaults, which a user can change."""
    oid = it.oid("arguments", parser.oid)
    for name in it.parser_arguments.get(parser.oid, ()):
        value = it.state.heap.get((parser.oid, f"argument {name}"))
        if isinstance(value, Constant) and value.known:
            it.state.heap[(oid, name)] = Known("default", element=value)
        elif value is not None:
            it.state.heap[(oid, name)] = Unknown()
    found = Known("arguments", oid, made=it.site(node))
    if method == "parse_known_args":
        return Container(it.oid(node), "tuple", items=(found, Unknown()))
    return found


def plain(value: Value | None) -> Value | None:
    """A configured default as the value it has when the user says nothing."""
    return value.element if isinstance(value, Known) and value.role == "default" else value


def without_positional(value: Known) -> Known:
    """The loader without its recorded arguments."""
    return replace(value, arguments=())
