"""Who calls a function, in the whole project.

Asked only about functions in which something would be reported. The project's text is searched for the function's name
first; of the files that mention it at most `MAX_FILES` are parsed, and calls are told by what the name was imported
from, or by the class of the object: `self`, an annotation, a constructor.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from torchmemlint.findings import Lead
from torchmemlint.flow import call_sites, gradient_modes
from torchmemlint.flow.call_sites import CallSite
from torchmemlint.flow.program import ClassInfo, Function, Program
from torchmemlint.flow.project import Project
from torchmemlint.source.loading import NOTEBOOK
from torchmemlint.syntax.outline import dotted

MAX_FILES = 12  # parsed for the callers of one function

# Called by machinery that no name leads to.
_IMPLICIT = frozenset({"forward"})


class Callers:
    """The callers of the functions of one file."""

    def __init__(self, main: Program) -> None:
        self._main = main
        self._found: dict[tuple[Path, str], list[CallSite]] = {}

    def calls(self, function: Function) -> list[CallSite]:
        """The known calls of a function, in the whole project."""
        return [site for site in self._sites(function) if site.called] if _is_called_by_name(function) else []

    def _sites(self, function: Function) -> list[CallSite]:
        """The calls of a function, where only calls of its name are known, these."""
        key = (function.program.source.path, function.qualname)
        if key not in self._found:
            self._found[key] = self._search(function)
        return self._found[key]

    def _search(self, function: Function) -> list[CallSite]:
        programs = self._programs(function, function.name)
        if programs is None:
            return list(self._by_bases(function))
        certain: list[CallSite] = []
        possible: list[CallSite] = []
        for program in programs:
            for site in _mentions(program, function):
                match self._is_call(site, function):
                    case True:
                        certain += _by_another_name(site) or [site]
                    case None if site.called:
                        possible.append(site)
        if function.cls is not None and self._is_only_definition(function):
            certain += possible
        found = certain or possible
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


def _is_class(a: ClassInfo, b: ClassInfo) -> bool:
    return a.name == b.name and a.program.source.path == b.program.source.path
