"""Checkpoints: what is read from a file, and whether it is copied into tensors that exist already.

`torch.load` puts every storage back on the device that it was saved from, unless it is told otherwise. What became of
the loaded value is followed by its origin: through the entries of a dictionary, renamed keys and helper functions, to a
`load_state_dict` that copies it.
"""

from __future__ import annotations

import libcst as cst

from torchmemlint.flow import calls, tensors
from torchmemlint.flow.arguments import Argument, Arguments, flag
from torchmemlint.flow.facts import CheckpointLoad, Use
from torchmemlint.flow.interpreter import Interpreter
from torchmemlint.flow.values import Constant, Device, External, Known, ModuleValue, Origin, Unknown, Value, origins_of
from torchmemlint.knowledge import checkpoints as known
from torchmemlint.syntax.text import text_of
from torchmemlint.syntax.walking import contains

# Methods of a dictionary of tensors whose results hold the same tensors.
_OF_DICTIONARIES = frozenset("items values get pop copy setdefault popitem".split())


def load(it: Interpreter, node: cst.Call, qualified: str, arguments: Arguments) -> Value:
    """`torch.load(path)` and the like: a value of unknown make that is followed from here."""
    calls.unknown_call(it, node, External(qualified), arguments)
    origin = it.origin(node)
    it.facts.loaded.add(origin)
    if it.recording:
        placed = arguments.find("map_location", str(known.LOADERS[qualified]))
        unmapped = placed is None or (isinstance(placed.node, cst.Name) and placed.node.value == "None")
        told = arguments.unknown_keywords or arguments.unknown_positional or not unmapped
        it.facts.checkpoint_loads.append(
            CheckpointLoad(
                it.site(node),
                it.scope,
                qualified,
                text_of(node.func),
                origin,
                as_saved=not told,
                on_host=placed is not None and _is_host(placed),
                file=_file(arguments),
            )
        )
    return Unknown(frozenset({origin}), origin)


def _is_host(placed: Argument) -> bool:
    """Does a `map_location` say the host, in whole or in part: by its value, a table of devices, a function?"""
    if isinstance(placed.node, cst.Lambda) or tensors.device_of_value(placed.value) is Device.HOST:
        return True
    return "cpu" in text_of(placed.node).replace("'", '"').split('"')


def save(it: Interpreter, node: cst.Call, arguments: Arguments) -> Value:
    """`torch.save(state, path)`: what this function reads from there again was on its own devices."""
    file = arguments.find("1", "f")
    if file is not None:
        it.facts.saved_files.add((it.frame.function, text_of(file.node)))
    for value in arguments.values:
        it.use(value, Use.READ)
    return Constant(None, True)


def _file(arguments: Arguments) -> str:
    found = arguments.find("0", "f", "url")
    return text_of(found.node) if found is not None else ""


def part(it: Interpreter, node: cst.Call, owner: Unknown, name: str) -> Value | None:
    """`checkpoint.items()`, `checkpoint.get("model")`; None where nothing that was loaded is meant."""
    if name in _OF_DICTIONARIES and _loaded(it, owner.origins):
        return Unknown(owner.origins, it.origin(node))
    return None


def copied(it: Interpreter, node: cst.Call, owner: Value, arguments: Arguments) -> bool:
    """`model.load_state_dict(state)`: is it a loaded value that goes there?

    What goes where no tensors are (the state of a scheduler or of a data loader) is read as numbers.
    """
    state = arguments.find("0", "state_dict")
    origins = _loaded_in(it, state)
    if state is None or not origins:
        return False
    if flag(arguments, "assign") is not False:
        it.use(Unknown(origins), Use.PASSED)  # the loaded tensors themselves become the parameters
    elif _holds_tensors(node, owner):
        it.use(Unknown(origins), Use.COPIED)
        for origin in origins:
            it.facts.copied_at.setdefault(origin, it.site(node))
        if not _is_optimizer(node, owner):
            it.facts.copied_to_modules |= origins
    else:
        it.use(Unknown(origins), Use.READ)
    if not isinstance(owner, ModuleValue):
        it.use(Unknown(it.deep_origins(state.value) - origins), Use.PASSED)
    return True


def built(it: Interpreter, node: cst.Call, arguments: Arguments) -> None:
    """`Model.from_pretrained(name, state_dict=loaded)`, as Hugging Face has it: it is copied into the new model."""
    origins = _loaded_in(it, arguments.find("state_dict"))
    if origins:
        it.use(Unknown(origins), Use.COPIED)
        it.facts.copied_to_modules |= origins
        for origin in origins:
            it.facts.copied_at.setdefault(origin, it.site(node))


def merged(it: Interpreter, node: cst.Call, owner: Value, arguments: Arguments) -> bool:
    """`state.update(loaded)`, of a model's own state dict as a rule: what is loaded goes on under its name."""
    first = arguments.find("0")
    origins = _loaded_in(it, first)
    if first is None or not origins or not isinstance(node.func, cst.Attribute):
        return False
    name = node.func.value
    if not isinstance(name, cst.Name) or not isinstance(owner, Known | Unknown):
        return False
    it.use(Unknown(it.deep_origins(first.value) - origins), Use.PASSED)
    it.state.vars[name.value] = Unknown(origins_of(owner) | origins, it.origin(node), name.value)
    return True


def _loaded_in(it: Interpreter, given: Argument | None) -> frozenset[Origin]:
    if given is None or not it.facts.loaded:
        return frozenset()
    return it.deep_origins(given.value) & it.facts.loaded


def run(it: Interpreter, before: Value, after: Value) -> None:
    """A value turns out to be a module by what is called on it: if it was loaded, a whole module was.

    What a call that is not understood makes of a loaded value is not what was loaded: `Model.build(options=loaded)`.
    """
    if isinstance(after, ModuleValue) and isinstance(before, Unknown) and _loaded(it, before.origins):
        if before.made not in it.facts.loaded and (before.made in it.callees or _is_made_of(it, before)):
            return
        it.use(before, Use.MODULE)
        if after.why is not None:
            for origin in before.origins & it.facts.loaded:
                it.facts.module_shown.setdefault(origin, after.why)


def _is_made_of(it: Interpreter, value: Unknown) -> bool:
    """Does it come from a call that something loaded was handed to, and not from one that loads it?"""
    call = value.made.site.node if value.made is not None else None
    if not isinstance(call, cst.Call):
        return False
    for argument in call.args:
        if any(contains(argument.value, origin.site.node) for origin in value.origins & it.facts.loaded):
            return True
        known = it.state.vars.get(argument.value.value) if isinstance(argument.value, cst.Name) else None
        if known is not None and _loaded(it, value.origins & origins_of(known)):
            return True
    return False


def _loaded(it: Interpreter, origins: frozenset[Origin]) -> bool:
    return bool(it.facts.loaded) and not origins.isdisjoint(it.facts.loaded)


def _is_optimizer(node: cst.Call, owner: Value) -> bool:
    if isinstance(owner, Known):
        return owner.role == "optimizer"
    return isinstance(owner, Unknown) and "optim" in text_of(node.func).partition(".load_state_dict")[0].lower()


def _holds_tensors(node: cst.Call, owner: Value) -> bool:
    """May the object have tensors for a state? A module or optimizer has; of others, what they are called tells."""
    if isinstance(owner, ModuleValue) or (isinstance(owner, Known) and owner.role == "optimizer"):
        return True
    if isinstance(owner, Known | Constant):
        return False
    called = text_of(node.func).lower()
    return not any(word in called for word in known.WITHOUT_TENSORS)
