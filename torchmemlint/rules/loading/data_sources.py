"""Where a loader's data come from, and whether there is work in making an item of them.

Asked of loaders without workers, once a file is analysed. The data are followed through variables, attributes,
parameters (to the callers), functions (to what they return, in whatever file) and what is taken out of tuples and
dictionaries, on the standard parser's trees. Work has to be seen: a data set of the project whose `__getitem__` opens,
decodes or transforms, one of a library that reads files, a transform that is handed over. A data set that is out of
view says nothing, nor does one that lies in memory.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

import libcst as cst

from torchmemlint.findings import Lead
from torchmemlint.flow import bindings, call_sites, datasets
from torchmemlint.flow.bindings import Definition
from torchmemlint.flow.call_sites import CallSite
from torchmemlint.flow.callers import Callers
from torchmemlint.flow.facts import FileFacts, Loader
from torchmemlint.flow.given import argument_of, call_at
from torchmemlint.flow.program import ClassInfo, Function, Program
from torchmemlint.flow.values import Container, Instance, Known, Tensor, Value
from torchmemlint.rules.loading import indexing
from torchmemlint.syntax.outline import dotted

MAX_DEPTH = 40  # steps from one expression to the next
MAX_LOOKS = 300  # expressions looked at for one loader
MAX_KEYS = 4  # elements of elements
MAX_FILES = 8  # searched for the classes that derive from one
# What reads and decodes an item when it is asked for.
_READING = (
    "torchvision.datasets.",
    "torchaudio.datasets.",
    "torchgeo.datasets.",
    "timm.data.create_dataset",
    "timm.data.ImageDataset",
    "datasets.load_dataset",
    "datasets.load_from_disk",
    "datasets.Dataset.",
    "h5py.File",
    "zarr.open",
    "lmdb.open",
)
_BASES = ("torchvision.datasets.", "torchaudio.datasets.", "torchgeo.datasets.")
_HELPERS = ("concurrent.futures.", "threading.Thread", "multiprocessing.Process", "multiprocessing.Pool")
_PARTS = frozenset({"Subset", "random_split", "ConcatDataset"})  # of `torch.utils.data`
_SAME_ELEMENTS = frozenset({"list", "tuple", "sorted", "reversed", "iter", "tqdm.tqdm", "copy.copy", "copy.deepcopy"})
# Methods of a data set of Hugging Face's that give another one of the same items.
_DERIVING = frozenset(
    "filter map select shuffle train_test_split with_format with_transform set_format remove_columns rename_column "
    "cast_column add_column shard flatten_indices".split()
)

Keys: TypeAlias = "tuple[int | str | None, ...]"  # what is taken out of a value, outermost first; None: any element


@dataclass(frozen=True)
class _Place:
    """Where an expression stands."""

    program: Program
    function: Function | None
    syntaxes: tuple[Definition, ...] = ()  # the functions around, innermost first

    @cached_property
    def site(self) -> CallSite:
        """The place for those who ask by way of a name that stands there."""
        syntax = self.syntaxes[0] if self.syntaxes else None
        return CallSite(ast.Name("", ast.Load()), self.program, self.function, syntax, called=True)

    def qualify(self, path: str) -> str:
        """A dotted path with its first name replaced by what it was imported as."""
        first, dot, rest = path.partition(".")
        imported = self.site.imported.get(first)
        return imported + dot + rest if imported else self.program.qualify(path)


def shows_work(facts: FileFacts, loader: Loader) -> bool:
    """Is work seen in making an item of what the loader loads, and is it such as a worker can do?"""
    if facts.callers is None or any(map(indexing.moves, datasets.collating(facts, loader))):
        return False
    search = _Search(facts.callers, facts.path)
    told = search.of_value(loader.dataset)
    if told is not None:
        return told
    expression = _expression(loader)
    return expression is not None and search.look(expression, _inside(loader.scope.function, facts.program))


def _expression(loader: Loader) -> ast.expr | None:
    """What the loader's call has for its data set."""
    call = loader.site.node
    arguments = call.args if isinstance(call, cst.Call) else ()
    named = [a.value for a in arguments if a.keyword is not None and a.keyword.value == "dataset"]
    given = named or [a.value for a in arguments[:1] if a.keyword is None and not a.star]
    return bindings.expression_of(given[0]) if given else None


def _inside(function: Function | None, program: Program) -> _Place:
    if function is None:
        return _Place(program, None)
    around = [function, *function.parents()]
    outer = next((one.syntax for one in around if one.syntax is not None), None)
    if outer is None:
        return _Place(program, around[-1])
    own = function.own_syntax
    inner = (own,) if function.syntax is None and own is not None else ()
    return _Place(program, around[-1], (*inner, outer))


@dataclass(slots=True)
class _Search:
    callers: Callers
    main: Path  # the file that is analysed
    seen: set[tuple[int, Keys]] = field(default_factory=set)
    depth: int = 0
    kept: list[ast.AST] = field(default_factory=list)  # so that no other node gets the identity of one that was seen

    def of_value(self, value: Value | None) -> bool | None:
        """What the analysis has found out already; None where it has not."""
        match value:
            case Instance(cls=cls):
                return self._of_class(cls, indexing.left_out(value))
            case Known(role="parts", element=element):
                return self.of_value(element)
            case Known(role="dataset", arguments=arguments) if (inner := dict(arguments).get("0")) is not None:
                return self.of_value(inner)
            case Tensor() | Container():
                return False
        return None

    def look(self, node: ast.expr, place: _Place, keys: Keys = ()) -> bool:
        """Is work seen in what an expression is, or in what is taken out of it?"""
        if (
            (id(node), keys) in self.seen
            or len(self.seen) > MAX_LOOKS
            or self.depth > MAX_DEPTH
            or len(keys) > MAX_KEYS
        ):
            return False
        self.seen.add((id(node), keys))
        self.kept.append(node)
        self.depth += 1
        found = self._look(node, place, keys)
        self.depth -= 1
        return found

    def _look(self, node: ast.expr, place: _Place, keys: Keys) -> bool:
        match node:
            case ast.Name(id=name):
                return self._name(name, place, keys)
            case ast.Attribute():
                return self._attribute(node, place, keys)
            case ast.Call():
                return self._call(node, place, keys)
            case ast.Subscript(value=value, slice=ast.Slice()):
                return self.look(value, place, keys)
            case ast.Subscript(value=value, slice=index):
                return self.look(value, place, (bindings.constant(index), *keys))
        return any(self.look(part, place, rest) for part, rest in bindings.parts(node, keys))

    def _name(self, name: str, place: _Place, keys: Keys) -> bool:
        for depth, syntax in enumerate(place.syntaxes):
            around = _Place(place.program, place.function, place.syntaxes[depth:])
            values = list(bindings.of_name(name, [syntax]))
            is_parameter = any(one.arg == name for one in bindings.parameters(syntax))
            if values or is_parameter:
                found = any(self.look(value, around, (*taken, *keys)) for value, taken in values)
                found = found or (bool(keys) and self._put_in(name, [syntax], around, keys))
                outermost = depth == len(place.syntaxes) - 1
                return found or (is_parameter and outermost and self._parameter(name, around, syntax, keys))
        statements = bindings.module_level(place.program)
        around = _Place(place.program, None)
        values = list(bindings.of_name(name, statements))
        if any(self.look(value, around, (*taken, *keys)) for value, taken in values):
            return True
        return bool(keys) and self._put_in(name, statements, around, keys)

    def _put_in(self, path: str, roots: Sequence[ast.AST], place: _Place, keys: Keys) -> bool:
        """Work in what is put into a list or dictionary, element by element."""
        return any(
            self.look(value, place, keys[1:])
            for key, value in bindings.put_into(path, roots)
            if key is None or keys[0] is None or key == keys[0]
        )

    def _parameter(self, name: str, place: _Place, syntax: Definition, keys: Keys) -> bool:
        """What callers in the whole project give, and what the parameter is annotated as."""
        function = place.function
        if function is None:
            return False
        annotation = next((one.annotation for one in bindings.parameters(syntax) if one.arg == name), None)
        if annotation is not None and not keys and self._annotated(annotation, place):
            return True
        called = function
        if function.name == "__init__" and function.cls is not None:
            called = Function(function.cls.name, function.cls.piece, function.cls.program, syntax=function.syntax)
        for site in self.callers.calls(called):
            call = call_at(site)
            skipped = called is not function
            given = argument_of(call, site, function, name, skip_first=skipped) if call is not None else None
            if given is not None and self.look(given, _at(site), keys):
                return True
        return False

    def _annotated(self, annotation: ast.expr, place: _Place) -> bool:
        path = call_sites.annotated(annotation)
        qualified = place.qualify(path)
        if qualified.startswith(_BASES):
            return True
        found = place.program.resolve_class(path) or place.program.resolve(qualified)
        return isinstance(found, ClassInfo) and self._of_class(found)

    def _attribute(self, node: ast.Attribute, place: _Place, keys: Keys) -> bool:
        cls = call_sites.class_of(node.value, place.site)
        if cls is None:
            return False
        path = f"self.{node.attr}"
        return any(
            self.look(value, _inside(method, method.program), (*taken, *keys))
            for method in _methods(cls)
            if method.syntax is not None and node.attr in method.outline.names
            for value, taken in bindings.of_attribute(path, method.syntax)
        ) or (bool(keys) and self._in_attribute(cls, path, keys))

    def _in_attribute(self, cls: ClassInfo, path: str, keys: Keys) -> bool:
        return any(
            self._put_in(path, [method.syntax], _inside(method, method.program), keys)
            for method in _methods(cls)
            if method.syntax is not None and path[len("self.") :] in method.outline.names
        )

    def _call(self, node: ast.Call, place: _Place, keys: Keys) -> bool:
        path = dotted(node.func)
        qualified = place.qualify(path) if path else ""
        found = _definition(path, qualified, place)
        match found:
            case Function():
                return self._returned(found, keys)
            case ClassInfo():
                return not keys and self._of_class(found, indexing.left_out_of(found, node))
        if isinstance(node.func, ast.Attribute):
            cls = call_sites.class_of(node.func.value, place.site)
            method = cls.method(node.func.attr) if cls is not None else None
            if method is not None and cls is not None:
                return self._returned(method, keys, cls)
        if _reads(node, qualified, place) or _transforms(node):
            return True
        return self._of_library(node, qualified, place, keys)

    def _of_library(self, node: ast.Call, qualified: str, place: _Place, keys: Keys) -> bool:
        """Calls that hand on what they are given, or elements of it."""
        last = qualified.rpartition(".")[2]
        match node:
            case ast.Call(args=[first, *_]) if qualified.startswith("torch.utils.data.") and last in _PARTS:
                inner = (None,) if last == "ConcatDataset" else ()
                return self.look(first, place, inner)
            case ast.Call(args=[first, *_]) if qualified in _SAME_ELEMENTS:
                return self.look(first, place, keys)
            case ast.Call(args=[first, *_]) if qualified == "enumerate" and keys[1:2] == (1,):
                return self.look(first, place, (None, *keys[2:]))
            case ast.Call(args=several) if qualified == "zip" and len(keys) > 1 and isinstance(keys[1], int):
                return any(self.look(one, place, (None, *keys[2:])) for one in several[keys[1] : keys[1] + 1])
            case ast.Call(func=ast.Attribute(value=owner, attr="get" | "pop"), args=[key, *default]):
                taken = (bindings.constant(key), *keys)
                return any(self.look(one, place, keys) for one in default) or self.look(owner, place, taken)
            case ast.Call(func=ast.Attribute(value=owner, attr="values")):
                return self.look(owner, place, keys)
            case ast.Call(func=ast.Attribute(value=owner, attr="items")) if keys[1:2] == (1,):
                return self.look(owner, place, (None, *keys[2:]))
            case ast.Call(func=ast.Attribute(value=owner, attr=method)) if method in _DERIVING:
                return self.look(owner, place, ())
            case ast.Call(keywords=keywords) if qualified == "dict":
                wanted = [one.value for one in keywords if keys[:1] in ((None,), (one.arg,))]
                return any(self.look(one, place, keys[1:]) for one in wanted)
        return False

    def _returned(self, function: Function, keys: Keys, cls: ClassInfo | None = None) -> bool:
        """Work in what a function returns; of a method that is to be replaced, in what the classes below return."""
        syntax = function.syntax
        if syntax is None:
            return False
        if function.is_abstract:
            return cls is not None and any(self._returned(one, keys) for one in self._replacing(function, cls))
        place = _inside(function, function.program)
        return any(self.look(value, place, keys) for value in bindings.returned(syntax))

    def _replacing(self, function: Function, cls: ClassInfo) -> Iterator[Function]:
        """The methods of that name of the project's classes that derive from a class."""
        project = cls.program.project
        programs: list[Program] = [cls.program]
        mentioning = project.mentioning(cls.name, self.main) if project is not None else None
        if project is not None and mentioning is not None and len(mentioning) <= MAX_FILES:
            others = (path for path in sorted(mentioning) if path != cls.program.source.path)
            read = (project.program(path, Lead.CALLER, cls.name, cls.program.source.path) for path in others)
            programs += [program for program in read if program is not None]
        for program in programs:
            for piece in program.source.pieces:
                found = program.find_class(piece.name) if piece.kind == "class" else None
                if found is not None and function.name in found.methods and _derives(found, cls):
                    yield found.methods[function.name]

    def _of_class(self, cls: ClassInfo, left_out: frozenset[str] = frozenset()) -> bool:
        """Is there work for a worker in an item of a data set of the project's class?"""
        if datasets.is_iterable(cls) or _has_helpers(cls):
            return False
        item = cls.method("__getitem__")
        if item is not None and indexing.moves(item):
            return False
        if item is None:
            return any(base.startswith(_BASES) for base in cls.external_bases())
        if not indexing.only_indexes(cls, left_out):
            return True
        owner = cls.method("__init__")
        if owner is None:
            return False
        place = _inside(owner, owner.program)
        return any(self.look(ast.parse(path, mode="eval").body, place) for path in sorted(set(indexing.looked_up(cls))))


def _at(site: CallSite) -> _Place:
    return _Place(site.program, site.function, (site.syntax,) if site.syntax is not None else ())


def _derives(cls: ClassInfo, base: ClassInfo) -> bool:
    """Does a class derive from another one, of which there may be two readings?"""
    own = (base.name, base.program.source.path)
    bases = [one for one in cls.ancestors() if one is not cls]
    return any((one.name, one.program.source.path) == own for one in bases)


def _has_helpers(cls: ClassInfo) -> bool:
    """Does a data set prepare items ahead by threads or processes of its own?"""
    return any(
        ancestor.program.qualify(path).startswith(_HELPERS)
        for ancestor in cls.ancestors()
        for path in ancestor.outline.called
    )


def _methods(cls: ClassInfo) -> Iterator[Function]:
    return (method for ancestor in cls.ancestors() for method in ancestor.methods.values())


def _definition(path: str, qualified: str, place: _Place) -> Function | ClassInfo | None:
    """The function or class of the project that a call by name calls."""
    if not path or path.partition(".")[0] == "self" or path in place.site.bound:
        return None
    program = place.program
    if "." not in path and program.defines(path):
        return program.find_function(path) or program.find_class(path)
    return program.resolve(qualified) if "." in qualified else program.starred(path)


def _reads(node: ast.Call, qualified: str, place: _Place) -> bool:
    """Does a library's class or function that is called read and decode items: also `getattr(datasets, name)(root)`?"""
    if qualified.startswith(_READING):
        return True
    match node.func:
        case ast.Call(func=ast.Name(id="getattr"), args=[module, _, *_]):
            return f"{place.qualify(dotted(module))}." in _BASES
        case ast.Subscript(value=ast.Attribute(value=module, attr="__dict__")):
            return f"{place.qualify(dotted(module))}." in _BASES
    return False


def _transforms(node: ast.Call) -> bool:
    """Is a transform handed to a data set that is out of view?"""
    return any(
        keyword.arg is not None
        and ("transform" in keyword.arg or "augment" in keyword.arg)
        and not (isinstance(keyword.value, ast.Constant) and not keyword.value.value)
        for keyword in node.keywords
    )
