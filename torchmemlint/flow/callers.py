"""Who calls a function, in the whole project, and with gradients on or off.

Asked only about functions in which something would be reported. The project's text is searched for the function's name
first; of the files that mention it at most `MAX_FILES` are parsed, and calls are told by what the name was imported
from, or by the class of the object: `self`, an annotation, a constructor. What stays unclear counts as today, as a call
with gradients on.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator
from pathlib import Path

from torchmemlint.findings import Lead
from torchmemlint.flow import call_sites, gradient_modes
from torchmemlint.flow.call_sites import CallSite
from torchmemlint.flow.program import ClassInfo, Function, Program
from torchmemlint.flow.project import Project
from torchmemlint.flow.values import Mode
from torchmemlint.source.loading import NOTEBOOK
from torchmemlint.syntax.outline import defaults, dotted

MAX_FILES = 12  # parsed for the callers of one function
MAX_DEPTH = 4  # callers of callers

# Called by machinery that no name leads to.
_IMPLICIT = frozenset({"forward"})


class Callers:
    """The callers of the functions of one file."""

    def __init__(self, main: Program) -> None:
        self._main = main
        self._modes: dict[tuple[Path, str, str], Mode] = {}
        self._found: dict[tuple[Path, str], list[CallSite]] = {}

    def mode(self, function: Function) -> Mode:
        """The mode in which all that calls the function runs it: on where anything does, or nothing is known to."""
        return self._mode(function, 0, frozenset(), function.cls) or Mode.ON

    def calls(self, function: Function) -> list[CallSite]:
        """The known calls of a function, in the whole project."""
        return [site for site in self._sites(function) if site.called] if _is_called_by_name(function) else []

    def _mode(
        self, function: Function, depth: int, within: frozenset[tuple[Path, str, str]], owner: ClassInfo | None
    ) -> Mode | None:
        """The same; None where the only callers are those asked about (`within`), which so do not decide.

        `owner`: the class whose objects run the function, where it is a method; what they inherit calls it by `self`.
        """
        key = (function.program.source.path, function.qualname, owner.name if owner is not None else "")
        if key in within:
            return None
        if key in self._modes:
            return self._modes[key]
        if depth > MAX_DEPTH or not _is_called_by_name(function):
            return Mode.ON
        sites = [site for site in self._sites(function) if owner is None or _may_be_of(site, owner)]
        sites = [site for site in sites if not _gives_nothing_to_run(site, function)] or sites
        guarding = {id(site.syntax) for site in sites if site.mode is Mode.OFF and site.syntax is not None}
        modes: set[Mode | None] = set() if sites else {Mode.ON}
        for site in sites:
            if site.mode is None and id(site.syntax) in guarding:
                modes.add(Mode.UNKNOWN)  # the same function calls it with gradients off on another branch
                continue
            modes.add(site.mode if site.mode is not None else self._of_caller(site, depth, within | {key}, owner))
            if Mode.ON in modes:
                break
        modes.discard(None)
        if not modes:
            return None  # a circle: other ways into it decide
        found = Mode.ON if not modes or Mode.ON in modes else Mode.UNKNOWN if Mode.UNKNOWN in modes else Mode.OFF
        self._modes[key] = found
        return found

    def _of_caller(
        self, site: CallSite, depth: int, within: frozenset[tuple[Path, str, str]], owner: ClassInfo | None
    ) -> Mode | None:
        if site.function is None:
            return Mode.ON
        return self._mode(site.function, depth + 1, within, owner if _is_by_self(site) else site.function.cls)

    def _sites(self, function: Function) -> list[CallSite]:
        """The calls of a function, where only calls of its name are known, these; of a `forward`, its objects'."""
        key = (function.program.source.path, function.qualname)
        if key not in self._found:
            is_forward = _is_implicit(function)
            self._found[key] = list(self._runs(function)) if is_forward else self._search(function)
        return self._found[key]

    def _runs(self, forward: Function) -> Iterator[CallSite]:
        """The calls of objects of a forward's class, in the files that make them."""
        cls = forward.cls
        if cls is None:
            return
        for program in self._programs(forward, cls.name, "class") or ():
            for name in sorted(call_sites.made_of(program, _names(program, cls.name))):
                for site in call_sites.find(program, name):
                    found = call_sites.class_of(site.node, site) if site.called else None
                    if found is not None and _runs(found, forward):
                        yield site

    def _search(self, function: Function) -> list[CallSite]:
        programs = self._programs(function, function.name)
        if programs is None:
            return list(self._by_bases(function))
        certain: list[CallSite] = []
        possible: list[CallSite] = []
        handed_back: list[CallSite] = []
        for program in programs:
            for site in _mentions(program, function):
                match self._is_call(site, function):
                    case True:
                        certain += _by_another_name(site) or [site]
                    case None if site.called:
                        possible.append(site)
                    case None if _is_returned(site):
                        handed_back.append(dataclasses.replace(site, mode=Mode.UNKNOWN))
        if function.cls is not None and self._is_only_definition(function):
            certain += possible
        found = certain or possible or handed_back
        return [site for site in found if not _is_self_check(site.function)] or found

    def _by_bases(self, function: Function) -> Iterator[CallSite]:
        """The calls of a method by those that its class inherits: what they are made of is filled in by it."""
        ancestors = list(function.cls.ancestors()) if function.cls is not None else []
        programs = {cls.program.source.path: cls.program for cls in ancestors if cls.program is not function.program}
        for program in programs.values():
            for site in _mentions(program, function):
                if site.called and _is_by_self(site) and self._is_call(site, function):
                    yield site

    def _programs(self, function: Function, name: str, keyword: str = "def") -> list[Program] | None:
        """The files that mention a function (or its class, by name and keyword), parsed; None where too many do."""
        own = function.program
        project = self._main.project
        if project is None or own.source.path.suffix == NOTEBOOK:  # which nobody imports
            return [own]
        mentioning = project.mentioning(name, self._main.source.path)
        if mentioning is None or not project.holds(own.source.path):
            return None
        others = [path for path in mentioning if path not in (own.source.path, self._main.source.path)]
        defining = project.mentioning(f"{keyword} {name}", self._main.source.path) or {}
        # A file that only defines a namesake mentions it as often as it defines it.
        others = [path for path in others if mentioning[path] > defining.get(path, 0)]
        if len(others) > MAX_FILES and (function.cls is None or keyword == "class"):
            importing = _importing(project, own.source.path, self._main.source.path)
            others = [path for path in others if path in importing]
        elif len(others) > MAX_FILES:
            calling = project.mentioning(f".{name}(", self._main.source.path) or {}
            others = [path for path in others if path in calling]
        if len(others) > MAX_FILES:
            return None
        found = [own]
        if self._main is not own and self._main.source.path in mentioning:
            found.append(self._main)
        for path in sorted(others):
            program = project.program(path, Lead.CALLER, name, own.source.path)
            if program is None:
                return None
            if not program.is_test:
                found.append(program)
        return found

    def _is_only_definition(self, function: Function) -> bool:
        project = self._main.project
        if project is None:
            return False
        defining = project.mentioning(f"def {function.name}", self._main.source.path)
        return defining is not None and sum(defining.values()) == 1

    def _is_call(self, site: CallSite, function: Function) -> bool | None:
        """Does a call (or other mention) of a function's name mean the function? None: it may."""
        program = site.program
        if site.function is not None and _same(site.function, function):
            return False  # a call of itself says nothing of how it is entered
        match site.node:
            case ast.Name(id=name):
                if function.cls is not None or name in site.bound:
                    return False
                if program.source.path == function.program.source.path:
                    return True
                return self._leads_to(site, name, function)
            case ast.Attribute(value=owner):
                if function.cls is None:
                    return self._leads_to(site, dotted(site.node), function)
                cls = call_sites.class_of(owner, site)
                return None if cls is None else _runs(cls, function)
        return False

    def _leads_to(self, site: CallSite, path: str, function: Function) -> bool:
        program = site.program
        project = self._main.project
        first, dot, rest = path.partition(".")
        if not first or project is None:
            return False
        target = function.program.source.path
        imported = site.imported.get(first) or program.imported.get(first)
        if imported is not None:
            return project.leads_to(imported + dot + rest, program.source.path, target, function.name)
        if dot:
            return False
        stars = (f"{module}{'' if module.endswith('.') else '.'}{first}" for module in program.star_imports)
        return any(project.leads_to(star, program.source.path, target, function.name) for star in stars)


def _is_self_check(function: Function | None) -> bool:
    """`def test():` beside what it tries out, for whoever runs the file: how the code is used elsewhere decides."""
    if function is None or function.cls is not None or function.syntax is None:
        return False
    arguments = function.syntax.args
    return function.name.split("_")[0] == "test" and not (arguments.posonlyargs or arguments.args or arguments.vararg)


def _importing(project: Project, path: Path, by: Path) -> set[Path]:
    """The files whose text imports a module of this file's name: `from .model import step`, `import net.model as m`."""
    name = path.parent.name if path.stem == "__init__" else path.stem
    phrases = (f"{name} import", f"import {name}", f"{name} as")
    return {found for phrase in phrases for found in project.mentioning(phrase, by) or ()}


def _mentions(program: Program, function: Function) -> Iterator[CallSite]:
    """The mentions of a function's name, also under the names that the file imports it as."""
    for name in sorted(_names(program, function.name)):
        yield from call_sites.find(program, name)


def _names(program: Program, name: str) -> set[str]:
    """A name, and those that the file imports what is called so as."""
    return {name, *(local for local, imported in program.imported.items() if imported.rpartition(".")[2] == name)}


def _by_another_name(site: CallSite) -> list[CallSite]:
    """`self.advance = self._advance_slowly`: the calls of `self.advance` in the file."""
    if site.called or site.syntax is None or site.function is None or site.function.cls is None:
        return []
    names = [
        target.attr
        for node in ast.walk(site.syntax)
        if isinstance(node, ast.Assign) and node.value is site.node
        for target in node.targets
        if isinstance(target, ast.Attribute) and dotted(target.value) == "self"
    ]
    others = [other for name in names for other in call_sites.find(site.program, name)]
    return [other for other in others if other.called and dotted(other.node).startswith("self.")]


def _is_returned(site: CallSite) -> bool:
    """`return self.policy.act`: whoever gets the method calls it, and decides."""
    nodes = ast.walk(site.syntax) if site.syntax is not None else ()
    return any(isinstance(node, ast.Return) and node.value is site.node for node in nodes)


def _is_implicit(function: Function) -> bool:
    """Is it run by calling an object: the `forward` of what may be an nn.Module? Not of a plain class, or of none."""
    if function.name not in _IMPLICIT or function.cls is None:
        return False
    return any(base.partition(".")[0] not in _PLAIN for base in function.cls.external_bases())


_PLAIN = frozenset({"object", "abc", "typing", "Generic", "Protocol", "typing_extensions", "collections"})


def _is_called_by_name(function: Function) -> bool:
    """Would a search for its name find the callers? Frameworks call their own hooks, with gradients on."""
    if gradient_modes.trained_by_framework(function) or gradient_modes.runs_inference(function):
        return False
    return function.parent is None and not function.name.startswith("__") and not _is_implicit(function)


def _same(a: Function, b: Function) -> bool:
    return a.qualname == b.qualname and a.program.source.path == b.program.source.path


def _runs(cls: ClassInfo, function: Function) -> bool:
    """Does a method's name, asked of an object of this class, mean the method?"""
    owner = function.cls
    assert owner is not None
    for ancestor in cls.ancestors():
        if function.name in ancestor.methods:
            if _same(ancestor.methods[function.name], function):
                return True
            break
    return any(_is_class(ancestor, cls) for ancestor in owner.ancestors())  # the object may be of a derived class


def _is_by_self(site: CallSite) -> bool:
    """`self.step(x)` in a method: the object that runs the method runs the called one, too."""
    owner = dotted(site.node.value) if isinstance(site.node, ast.Attribute) else ""
    return owner == "self" and site.function is not None and site.function.cls is not None


def _may_be_of(site: CallSite, cls: ClassInfo) -> bool:
    """May an object of this class, or of one that derives from it, run the method in which it calls its own?"""
    calling = site.function.cls if site.function is not None else None
    if calling is None or not _is_by_self(site):
        return True
    return any(_is_class(one, calling) for one in cls.ancestors()) or any(
        _is_class(one, cls) for one in calling.ancestors()
    )


def _gives_nothing_to_run(site: CallSite, function: Function) -> bool:
    """`show(loader)`, where the function would run the `model` that it could be given, and is None here?"""
    if site.call is None or function.syntax is None:
        return False
    given = function.syntax.args
    positional = [argument.arg for argument in (*given.posonlyargs, *given.args)]
    if (
        function.cls is not None
        and isinstance(site.call.func, ast.Attribute)
        and "staticmethod" not in function.decorator_texts()
    ):
        positional = positional[1:]
    run = function.outline.called & {*positional, *(argument.arg for argument in given.kwonlyargs)}
    if not run or any(isinstance(argument, ast.Starred) for argument in site.call.args):
        return False
    if any(keyword.arg is None for keyword in site.call.keywords):
        return False
    values = defaults(given)
    values |= dict(zip(positional, site.call.args, strict=False))
    values |= {keyword.arg: keyword.value for keyword in site.call.keywords if keyword.arg is not None}
    return all(_is_none(values.get(name)) for name in run)


def _is_none(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _is_class(a: ClassInfo, b: ClassInfo) -> bool:
    return a.name == b.name and a.program.source.path == b.program.source.path
