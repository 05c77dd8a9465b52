"""Which functions of a file are walked on their own.

Most files of a library define layers. There, a fact that a rule could report needs a sign that the syntax shows
(`flow.signs`): a number read off, a detach, an activation with an in-place form, a tensor that is overwritten. Only
functions with such a sign are walked, with those that could have a say in it: their class's constructor, functions that
mention them or the attributes concerned; and what mentions these in turn, where it sets the gradient mode. What a
walked function calls is followed as ever, but for layers without a sign.

Where a file trains, evaluates or loads data, all its functions are walked, but for those that only hand settings on
(`flow.idle`), and of the methods of layers those without a sign. Of tests, in which memory is nobody's business, even
less is walked. `tests/flow/test_relevance.py` holds this against a full walk.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Set
from functools import lru_cache

from torchmemlint.flow import bindings, idle, signs
from torchmemlint.flow.program import Function, Program
from torchmemlint.flow.units import Unit
from torchmemlint.immutable import immutable
from torchmemlint.knowledge import torch_api
from torchmemlint.knowledge.contracts import Contracts
from torchmemlint.syntax.outline import Outline, dotted, walk
from torchmemlint.syntax.source_module import Piece

# Calls by which a file trains or evaluates. Everything in such a file may matter.
_TRAINING = frozenset(["grad"])
_DRIVING_ENDS = ("Loader", "_hook", "Pipeline")
_MAKING = frozenset("from_pretrained from_config from_single_file".split())
_EVALUATING = _MAKING | {"eval", "set_grad_enabled", "Variable"}
_BUILDING = frozenset(["from_config"])  # what they give is in training mode, like any new module
# What transformers and diffusers call their classes that are no models, and are made in the same ways.
_NO_MODELS = ("Tokenizer", "TokenizerFast", "Config", "Processor", "FeatureExtractor", "Scheduler")
_EVALUATING_TEXT = ".train(False"
# Calls by which a graph ends.
_ENDING = torch_api.READERS | torch_api.DISCRETE | torch_api.CUTS | torch_api.DISCRETE_FACTORIES


@immutable()
class Relevance:
    """The functions to walk, in source order, and names of functions that are called by others which are not walked."""

    functions: tuple[Function, ...]
    called_out_of_view: Set[str]
    drives: bool  # does the file train, evaluate, hook or load?
    computing: Set[Function] = frozenset()  # forward passes that need not be followed where a layer is run


def find(program: Program) -> Relevance:
    """The functions of the file that are walked."""
    settled = idle.find(program)
    handing = settled.handing.keys()
    units = [unit for unit in _units(program) if unit.function.piece not in settled.ends]
    driven = not program.is_test and drives(program)
    chosen = _slice_of_tests(units) if program.is_test else _slice(program, units, handing, driven=driven)
    walked = [unit for unit in units if unit in chosen]
    others = [unit for unit in units if unit not in chosen]
    callees = settled.callees(handing - {unit.function.piece for unit in walked})
    callees.update(*(unit.outline.calls for unit in others))
    computing = frozenset(unit.function for unit in others if _only_computes(unit))
    functions = tuple(unit.function for unit in walked)
    return Relevance(functions, callees, driven, computing)


def _units(program: Program) -> Iterator[Unit]:
    for piece in program.source.pieces:
        if piece.kind == "def":
            function = program.find_function(piece.name)
            if function is not None and function.piece is piece and function.syntax is not None:
                yield Unit(function, function.syntax, None)
        elif piece.kind == "class":
            cls = program.find_class(piece.name)
            if cls is not None and cls.piece is piece:
                for method in sorted(cls.methods.values(), key=lambda m: m.name != "__init__"):
                    if method.syntax is not None:
                        yield Unit(method, method.syntax, cls)


def _only_computes(unit: Unit) -> bool:
    """Is it a layer's forward pass whose result has a graph, as that of any layer of torch has?"""
    return unit.in_module and unit.name == "forward" and unit.outline.calls.isdisjoint(_ENDING)


def drives(program: Program) -> bool:
    """Does the file train, evaluate, hook or load, or follow a framework's contract that does?"""
    if _EVALUATING_TEXT in program.source.text or any(piece.outline is None for piece in program.source.pieces):
        return True
    if any(_piece_drives(piece, program) for piece in program.source.pieces):
        return True
    classes = (piece.outline for piece in program.source.pieces if isinstance(piece.outline, ast.ClassDef))
    return any(_is_promised(program, (program.qualify(dotted(base)) for base in cls.bases)) for cls in classes)


def _piece_drives(piece: Piece, program: Program) -> bool:
    outline = program.summary(piece)
    return _drives(outline, program, but=_of_layers(program, piece, outline) | _of_no_models(outline))


def _drives(outline: Outline, program: Program, but: Set[str] = frozenset()) -> bool:
    """Does something train, evaluate, hook or load, by other calls than `but`?"""
    if "compute_metrics" in outline.names:
        return True  # a trainer may be built
    return bool(_driving(outline, program) - but)


def _driving(outline: Outline, program: Program) -> set[str]:
    """The names of the calls that train, evaluate, hook or load."""
    return {call for call in outline.calls if call.endswith(_DRIVING_ENDS)} | outline.calls & _named(program.contracts)


@lru_cache(maxsize=16)
def _named(contracts: Contracts) -> frozenset[str]:
    names = contracts.names
    return _TRAINING | _EVALUATING | names("differentiates").shown_by | names("runs-without-gradients").methods


def _generating(program: Program) -> Set[str]:
    """Methods of whatever object that run modules without gradients."""
    return program.contracts.names("runs-without-gradients").methods


def _is_promised(program: Program, bases: Iterable[str]) -> bool:
    """Does a framework call the methods of a class with such bases?"""
    return any(base.endswith(program.contracts.base_classes) for base in bases)


def _of_layers(program: Program, piece: Piece, outline: Outline) -> Set[str]:
    """The calls of the piece that drive nothing, since it is a module that runs or makes what it is made up of, puts
    that into evaluation mode as it is made, or hands such a call on to its base class.
    """
    named = outline.calls & ({"eval"} | _MAKING | _generating(program))
    cls = program.find_class(piece.name) if named and piece.kind == "class" else None
    if cls is None or not cls.is_module:
        return frozenset()
    methods = cls.methods.values()
    return {
        name
        for name in named
        if name in _generating(program)
        or not any(name in method.outline.calls for method in methods if method.name not in _places(name))
    }


def _places(call: str) -> tuple[str, ...]:
    """The methods of a module in which a call drives nothing."""
    return ("__init__", call) if call == "eval" or call in _BUILDING else (call,)


def _of_no_models(outline: Outline) -> Set[str]:
    """The calls that only make what is no model: `AutoTokenizer.from_pretrained(name)`."""
    named = outline.calls & _MAKING
    if not named:
        return frozenset()
    calls = (node.func for node in outline.nodes if isinstance(node, ast.Call))
    models = {
        func.attr if isinstance(func, ast.Attribute) else dotted(func)
        for func in calls
        if not (isinstance(func, ast.Attribute) and dotted(func.value).endswith(_NO_MODELS))
    }
    return named - models


def _slice_of_tests(units: list[Unit]) -> set[Unit]:
    """The units of a file of tests in which a mistake shows that counts there, too."""
    chosen = {unit for unit in units if signs.changes_nothing(unit)}
    return chosen | _constructors(chosen, units)


def _slice(program: Program, units: list[Unit], handing: Set[Piece], *, driven: bool) -> set[Unit]:
    """The units with a sign, and those that have a say in it.

    Functions that only hand settings on (`handing`) have no say in what happens to tensors. Where the file trains,
    evaluates or loads (`driven`), all are taken but those that only compute, in layers.
    """
    measured = _see_modules(program, units)
    graphs: set[Unit] = set()
    for unit in units:
        part = (driven or unit.name == "__init__") and unit.in_module and _has_part(unit, program)
        if part:
            unit.attributes |= _attributes_of_part(unit, program)
        if signs.cuts(unit) or part or (unit in measured and signs.measures(unit)):
            graphs.add(unit)
    chosen = {*graphs}
    if graphs:
        chosen.update(unit for unit in units if signs.asks_for_gradients(unit))
    if driven:
        chosen.update(unit for unit in units if not unit.in_module)
        named = set().union(*(unit.outline.names | _quoted(unit) for unit in chosen))
        chosen.update(unit for unit in units if unit.name == "__init__" and unit.cls and unit.cls.name in named)
    others = [unit for unit in units if unit.function.piece not in handing]
    chosen |= _with_callers(graphs, others)
    return chosen | _constructors(chosen, units)


def _quoted(unit: Unit) -> set[str]:
    """The names in the annotations of a function's parameters that are strings."""
    annotations = (node.annotation for node in bindings.parameters(unit.syntax))
    texts = (node.value for node in annotations if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return set().union(*(re.findall(r"\w+", text) for text in texts))


def _has_part(unit: Unit, program: Program) -> bool:
    """Does a module's method train, evaluate, hook or load, or stand for one that a framework calls?"""
    assert unit.cls is not None
    evaluates = "train" in unit.outline.calls and _EVALUATING_TEXT in program.source.text
    if evaluates or _is_promised(program, unit.cls.base_names()):
        return True
    return _drives(unit.outline, program, _excused(unit, program))


def _excused(unit: Unit, program: Program) -> Set[str]:
    """The calls that make no part of a module's method, as of `_of_layers`."""
    excused = _generating(program) | _of_no_models(unit.outline)
    return excused | (_BUILDING if unit.name == "__init__" else frozenset())


def _attributes_of_part(unit: Unit, program: Program) -> set[str]:
    """The attributes that a part is about: in a constructor those that it puts into evaluation mode, hooks or loads."""
    if unit.name != "__init__":
        return _own_attributes(unit.nodes(ast.Attribute))
    concerned: set[str] = set()
    driving = _driving(unit.outline, program) - _excused(unit, program)
    for call in unit.nodes(ast.Call):
        match call.func:
            case ast.Name(id=name) | ast.Attribute(attr=name) if name in driving:
                owner = dotted(call.func.value) if isinstance(call.func, ast.Attribute) else ""
            case _:
                continue
        if owner.startswith("self."):
            concerned.add(owner.split(".")[1])
        elif owner == "self":  # who runs it is concerned, and what is handed in
            concerned |= _own_attributes(part for given in call.args for part in walk(given))
        else:
            return _own_attributes(unit.nodes(ast.Attribute))
    return concerned


def _own_attributes(nodes: Iterable[ast.AST]) -> set[str]:
    attributes = (node for node in nodes if isinstance(node, ast.Attribute))
    return {node.attr for node in attributes if isinstance(node.value, ast.Name) and node.value.id == "self"}


def _constructors(chosen: Set[Unit], units: list[Unit]) -> set[Unit]:
    """The constructors of the classes that methods belong to, and of the modules that are built by one of all these."""
    inits = [unit for unit in units if unit.name == "__init__" and unit.cls is not None]
    classes = {cls for unit in chosen if unit.cls is not None for cls in unit.cls.ancestors()}
    found: set[Unit] = set()
    pending = [*chosen, *(unit for unit in inits if unit.cls in classes)]
    while pending:
        found.update(unit for unit in pending if unit.name == "__init__")
        built = set().union(*(unit.outline.calls for unit in pending))
        classes = {cls for unit in inits if unit.cls and unit.cls.name in built for cls in unit.cls.ancestors()}
        pending = [unit for unit in inits if unit.cls in classes and unit.in_module and unit not in found]
    return found


def _see_modules(program: Program, units: list[Unit]) -> set[Unit]:
    """Units in whose sight a module is run: they, what they are given or their class show one."""
    names = {"Module"}
    names.update(p.name for p in program.source.pieces if p.kind == "class" and _is_module(program, p.name))
    names.update(name for name, qualified in program.imported.items() if program.contracts.is_module_class(qualified))
    found = {unit for unit in units if signs.shows_module(unit, names, program)}
    classes = {unit.cls for unit in found if unit.cls is not None}
    found.update(unit for unit in units if unit.cls in classes)
    return _with_mentioning(found, units)


def _is_module(program: Program, name: str) -> bool:
    cls = program.find_class(name)
    return cls is not None and cls.is_module


def _with_mentioning(seeds: Iterable[Unit], units: list[Unit]) -> set[Unit]:
    """The seeds, the units that mention one of them, those that mention one of these, and so on."""
    pending = list(seeds)
    reached = set(pending)
    wanted: set[str] = set()
    while pending:
        fresh = set().union(*(_mentions(unit) for unit in pending)) - wanted
        wanted |= fresh
        pending = [unit for unit in units if unit not in reached and _names_one(unit, fresh)]
        reached.update(pending)
    return reached


def _with_callers(seeds: Set[Unit], units: list[Unit]) -> set[Unit]:
    """The seeds, with the units that mention one of their attributes or them.

    Those that mention these in turn, and so on, have a say by the gradient mode that one of them sets.
    """
    wanted = set().union(*(unit.attributes | _mentions(unit) for unit in seeds))
    running = wanted - {unit.cls.name for unit in units if unit.cls is not None and unit.in_module}
    near = set(seeds)
    near.update(unit for unit in units if _names_one(unit, running if _builds_layers(unit) else wanted))
    far = _with_mentioning(near, units)
    called = set().union(*(_mentions(unit) for unit in far))
    sets_mode = (unit for unit in far - near if not called.isdisjoint(unit.outline.calls) and signs.sets_mode(unit))
    return far if any(sets_mode) else near


def _builds_layers(unit: Unit) -> bool:
    """Is it a module's constructor: does it build other modules, and not run them?"""
    return unit.in_module and unit.name == "__init__"


def _names_one(unit: Unit, wanted: Set[str]) -> bool:
    """Does a unit mention one of the names: its own, if it calls what is named like it?"""
    outline = unit.outline
    if wanted.isdisjoint(outline.names):
        return False
    return unit.name not in wanted or unit.name in outline.calls or not wanted.isdisjoint(outline.names - {unit.name})


def _mentions(unit: Unit) -> set[str]:
    """The names by which others reach a function."""
    if unit.cls is None:
        return {unit.name}
    if unit.name in ("__init__", "forward", "__call__", "__new__"):
        return {unit.cls.name}
    return {unit.name}


def _family(unit: Unit, units: list[Unit]) -> list[Unit]:
    """The methods of a method's class and of the classes that derive from it."""
    return [u for u in units if u.cls is not None and unit.cls is not None and unit.cls in u.cls.ancestors()]
