"""Settings: what whoever runs a program may say, and the numbers that a machine has."""

from __future__ import annotations

from collections.abc import Callable

from torchmemlint.flow.domain.frame import CallSite
from torchmemlint.flow.domain.heap import visible
from torchmemlint.flow.domain.kinds import Kind
from torchmemlint.flow.domain.refs import Choice, Counted, Object, Ref
from torchmemlint.flow.domain.values import NO_SOURCES, PLAIN, UNKNOWN, Texts, Value, beginnings, chosen, constant, of
from torchmemlint.flow.ir.ops import Function
from torchmemlint.flow.models import builtins, containers
from torchmemlint.knowledge import settings as known

_ACCELERATORS = frozenset({"cuda", "mps", "xpu"})  # what most of them are: with the host's name they still are a few


def method(site: CallSite, target: Object, name: str) -> Value | None:
    """Return the value of a method of a parser of command lines; None for other objects."""
    if target.about not in known.PARSERS:
        return None
    match name:
        case "add_argument_group" | "add_mutually_exclusive_group":
            return of(target)
        case "add_argument":
            _add(site, target)
            return PLAIN
        case "set_defaults":
            for option, value in site.arguments.named.items():
                site.state.heap.put(target, option, chosen(value))
            return PLAIN
        case "parse_args" | "parse_known_args":
            parsed = _parsed(site, target)
            return parsed if name == "parse_args" else containers.row(site, "parsed", [parsed, UNKNOWN])
    return None


def _add(site: CallSite, parser: Object) -> None:
    """`parser.add_argument("--workers", default=4)`."""
    flags = [v.constant for v in site.arguments.positional if isinstance(v.constant, str)]
    if flags:
        long = next((flag for flag in flags if flag.startswith("--")), flags[0])
        name = site.constant(9, "dest", long.lstrip("-").replace("-", "_"))
        default = site.arguments.named.get("default")
        if isinstance(name, str) and default is not None and (found := chosen(default)).refs:
            site.state.heap.put(parser, name, found)


def _parsed(site: CallSite, parser: Object) -> Value:
    made = Object.of(Kind.OPAQUE, site.point.site, site.point.context, "argparse.Namespace")
    site.state.heap.drop(made)
    for name, value in list(visible(site.state.heap.edges(parser))):
        site.state.heap.put(made, name, value)
    return Value(made.alone, open=True)


def hyperparameters(site: CallSite, target: Ref, name: str) -> Value | None:
    """`self.save_hyperparameters()` in a constructor: `self.hparams` holds what that is given. None for others."""
    function = site.frame.function
    if name != "save_hyperparameters" or function.name != "__init__":
        return None
    box = containers.made(site, Kind.DICT, "hparams")
    for parameter in function.parameters[1:]:
        held = site.state.variables.get(parameter.name)
        if held is not None:
            site.write(box, parameter.name, held)
    site.write(of(target), "hparams", box)
    return PLAIN


def update(site: CallSite, target: Object, name: str) -> Value | None:
    """`vars(self).update(options)`: attributes are set, perhaps all. None for other methods."""
    if name != "update" or site.machine.index.is_open(target.about.cls):
        return None
    return containers.method(site, target, name, NO_SOURCES)


def option(function: Function, parameter: str) -> Value | None:
    """Return what an option of click is: `@click.option("--workers", default=4)`. None where there is none."""
    for decorator in function.decorators:
        if decorator.name in known.OPTIONS:
            texts = [text for text in decorator.arguments if isinstance(text, str)]
            names = [text.split("/")[0].lstrip("-").replace("-", "_").lower() for text in texts]
            numbers = [value for value in decorator.arguments if type(value) is int]
            if parameter in names and numbers:
                return chosen(constant(numbers[0]))
    return None


def _counted(qualified: str) -> Callable[[CallSite], Value]:
    return lambda site: of(Counted.of(qualified, site.point.site))


def _attributes(site: CallSite) -> Value:
    """A mapping whose entries are attributes as well."""
    given = site.value(0)
    is_dict = [type(r) is Object and r.kind is Kind.DICT for r in given.refs]
    if site.arguments.positional and not (is_dict and all(is_dict)):
        is_instance = [type(r) is Object and r.kind is Kind.INSTANCE for r in given.refs]
        return given if is_instance and all(is_instance) else UNKNOWN
    return given if site.arguments.positional else builtins.FUNCTIONS["dict"](site)


def _device(site: CallSite) -> Value:
    """`torch.device("cuda")`: as good as its name."""
    given = site.arguments.get(0, "device") or site.value(0, "type")
    if beginnings(given) or (given.refs and all(type(r) is Choice for r in given.refs)):
        return given
    symbols = frozenset(r for r in given.refs if r.symbolic)
    made = Object.of(Kind.OPAQUE, site.point.site, site.point.context, "torch.device")
    return Value(symbols or made.alone, open=True)


FUNCTIONS: dict[str, Callable[[CallSite], Value]] = {
    **{name: _counted(name) for name in known.COUNTING},
    "torch.device": _device,
    "torch.accelerator.current_accelerator": lambda site: Value(constant=Texts(_ACCELERATORS)),
    **dict.fromkeys(known.NAMESPACES, _attributes),
}
