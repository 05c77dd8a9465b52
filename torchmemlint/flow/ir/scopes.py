"""Who binds which name.

While a function is lowered, its operations share one `Name` for each text. Comprehensions and class bodies have scopes
of their own, but no frame: what they bind are locals of the function around them, under texts that no source can have
("x@12"). Where all the names live is only known at the end of the file: `resolve` says it then.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from .conditions import collect_tested
from .control import For, While
from .ops import Class, Function, Unit
from .places import Name, Scope, Temp

Definition = Function | Class
_NONE: frozenset[str] = frozenset()
_NO_VARIABLES: Mapping[str, Name] = {}


class Names(dict[str, Name]):
    """The names of a function by their text: each is made when it is first asked for."""

    __slots__ = ("enclosed", "made")

    def __init__(self, made: list[Name], enclosed: Frame | None) -> None:
        super().__init__()
        self.made = made
        self.enclosed = enclosed  # a lambda in a comprehension: its frame

    def __missing__(self, text: str) -> Name:
        name = Name(text if self.enclosed is None else self.enclosed.seen_from_within(text))
        self[text] = name
        self.made.append(name)
        return name


class Frame:
    """What is known of a function while it is lowered."""

    __slots__ = tuple(
        "annotated assigned binds block class_scope enclosed function globals made names nonlocals outer "
        "renamed temps tested touched variables".split()
    )

    def __init__(self, function: Function, outer: Frame | None) -> None:
        self.function = function
        self.outer = outer
        self.made: list[Name] = []  # under their own texts
        self.renamed: list[Name] = []  # under texts of their own making
        self.binds: list[Name] = []  # what is bound, in the order of the source, as often as it is
        self.touched: list[Name] = []  # where operations in place write back to
        self.globals = _NONE
        self.nonlocals = _NONE
        self.annotated = _NONE  # `x: int` makes x a local
        self.tested: set[str] = set()  # names in the tests
        self.assigned: dict[str, ast.expr] = {}  # the syntax of what a name is bound to, where that might be a test
        self.variables: Mapping[str, Name] = _NO_VARIABLES  # of the comprehensions that are being lowered
        self.enclosed: bool = outer is not None and (outer.enclosed or bool(outer.variables))  # in a comprehension?
        self.names = Names(self.made, self if self.enclosed else None)
        # As left when an inner function was begun:
        self.block = function.body
        self.temps: int = 0
        self.class_scope: ClassScope | None = None

    def seen_from_within(self, text: str) -> str:
        """A lambda in a comprehension sees the comprehension's variables."""
        frame = self.outer
        while frame is not None:
            if text in frame.variables:
                return frame.variables[text].text
            if text in frame.function.bound:
                return text
            frame = frame.outer
        return text

    def rename(self, text: str, number: int) -> Name:
        """A local of its own for a comprehension or class body."""
        name = Name(f"{text}@{number}")
        self.renamed.append(name)
        return name


class ClassScope:
    """The names that a class body binds: it sees them first, the functions and comprehensions in it never."""

    __slots__ = ("before", "cls", "declared", "frame", "members", "number", "renamed")

    def __init__(self, cls: Class, frame: Frame, number: Temp) -> None:
        self.cls = cls
        self.frame = frame
        self.number = number
        self.renamed: dict[str, Name] = {}
        self.before: dict[str, Name | None] = {}
        self.declared: dict[str, Name] = {}  # global, nonlocal
        self.members: dict[str, None] = {}  # those that are not just methods, in order

    def bound(self, text: str) -> Name:
        """The name that a binding in the class body binds."""
        if text in self.declared:
            return self.declared[text]
        name = self.renamed.get(text)
        if name is None:
            name = self.renamed[text] = self.frame.rename(text, self.number)
            self.before[text] = self.frame.names.get(text)
            self.frame.names[text] = name
        return name

    def declare(self, text: str, scope: Scope) -> None:
        """`global x` or `nonlocal x` in a class body."""
        self.declared[text] = Name(text, scope) if scope is Scope.GLOBAL else self.frame.names[text]

    def removed(self, text: str) -> None:
        """After `del x` the class has no such member."""
        self.members.pop(text, None)

    def hide(self) -> None:
        """The function's own names are seen again."""
        restore(self.frame.names, self.before)

    def reveal(self) -> None:
        """The opposite."""
        names = self.frame.names
        for text, name in self.renamed.items():
            self.before[text] = names.get(text)
            names[text] = name


def restore(names: dict[str, Name], before: dict[str, Name | None]) -> None:
    """Make names what they were before."""
    for text, name in before.items():
        if name is None:
            names.pop(text, None)
        else:
            names[text] = name


@dataclass(slots=True)
class Scopes:
    """The frames of a file, outer ones first, and what else has to wait for its end."""

    frames: list[Frame] = field(default_factory=list)
    loops: list[tuple[For | While, list[Name]]] = field(default_factory=list)
    definitions: list[tuple[str, Definition]] = field(default_factory=list)  # of the module's own scope
    globals: set[str] = field(default_factory=set)  # declared so in class bodies


def resolve(scopes: Scopes, unit: Unit) -> None:
    """Give each name its scope, each function its sets of names and each loop its writes."""
    frames = scopes.frames
    module = frames[0]
    module.function.bound |= scopes.globals
    for frame in frames:
        function = frame.function
        bound = function.bound
        for name in frame.binds:
            bound.add(name.text)
        if frame.annotated:
            bound |= frame.annotated
        if frame.nonlocals:
            bound -= frame.nonlocals
        if frame.globals:
            bound -= frame.globals
            module.function.bound |= frame.globals
        function.mentions.update(frame.names)
    for frame in frames[1:]:
        _look_outward(frame, module)
    _share(frames)
    for loop, names in scopes.loops:
        loop.writes = frozenset([name.text for name in names if name.scope is Scope.LOCAL])
    for frame in reversed(frames):
        function = frame.function
        outer = frame.outer
        if outer is not None:
            outer.function.mentions |= function.mentions
            if frame.tested:
                outer.tested |= frame.tested - function.bound
                if outer.outer is not None:
                    function.around = frozenset(frame.tested & outer.function.bound - function.bound - frame.globals)
                function.tested = _tested_parameters(frame)
    unit.once = _bound_once(scopes)


def _tested_parameters(frame: Frame) -> frozenset[str]:
    """The parameters that tests depend on, by their own names or those of conditions made from them once."""
    parameters = {parameter.name for parameter in frame.function.parameters}
    tested = frame.tested
    pending = [text for text in tested if text in frame.assigned]
    while pending:
        text = pending.pop()
        if sum([name.text == text for name in frame.binds]) == 1 and text not in parameters:
            found: set[str] = set()
            collect_tested(frame.assigned[text], found)
            found -= tested
            tested |= found
            pending += [other for other in found if other in frame.assigned]
    return frozenset(tested & parameters)


def _look_outward(frame: Frame, module: Frame) -> None:
    """Find the owners of a function's names that it does not bind."""
    bound = frame.function.bound
    known = module.function.bound
    declared = frame.globals
    outer = frame.outer
    nested = outer is not module
    for name in frame.made:
        text = name.text
        if text in bound:
            continue
        if text in declared:
            name.scope = Scope.GLOBAL
        elif nested and (found := _owner(text, outer, module)) is not None:
            owner, name.hops = found
            name.scope = Scope.CELL
            owner.function.shared.add(text)
        elif text in known:
            name.scope = Scope.GLOBAL
            if "@" in text:
                module.function.shared.add(text)
        else:
            name.scope = Scope.BUILTIN


def _owner(text: str, frame: Frame | None, module: Frame) -> tuple[Frame, int] | None:
    """The function around that binds a name, and how many functions further out it is."""
    hops = 1
    while frame is not None and frame is not module:
        if text in frame.globals:
            return None
        if text in frame.function.bound:
            return frame, hops
        frame = frame.outer
        hops += 1
    return None


def _share(frames: Iterable[Frame]) -> None:
    """Names that inner functions use live in cells; those of the module are global."""
    for frame in frames:
        shared = frame.function.shared
        if frame.outer is None:
            bound = frame.function.bound
            for name in frame.made:
                name.scope = Scope.GLOBAL if name.text in bound else Scope.BUILTIN
            for name in frame.renamed:
                if name.text in shared:
                    name.scope = Scope.GLOBAL
            shared.clear()
        elif shared:
            for name in frame.made:
                if name.text in shared and name.scope is Scope.LOCAL:
                    name.scope = Scope.CELL
            for name in frame.renamed:
                if name.text in shared:
                    name.scope = Scope.CELL


def _bound_once(scopes: Scopes) -> dict[str, Definition]:
    """The functions and classes of the module that keep their names."""
    counts: dict[str, int] = {}
    for name in scopes.frames[0].binds:
        counts[name.text] = counts.get(name.text, 0) + 1
    for frame in scopes.frames[1:]:
        if frame.globals:
            for name in frame.binds:
                if name.scope is Scope.GLOBAL:
                    counts[name.text] = counts.get(name.text, 0) + 1
    return {
        text: definition for text, definition in scopes.definitions if counts[text] == 1 and text not in scopes.globals
    }
