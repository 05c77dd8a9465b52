"""What the project's files put into attributes of one name: of modules that only their treatment shows to be modules.

Works on the standard parser's trees, and looks at other files: to be asked last, of what would be reported.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchmemlint.findings import Lead
from torchmemlint.flow.facts import FileFacts, ModuleCall
from torchmemlint.flow.program import ClassInfo, Program
from torchmemlint.knowledge import modules
from torchmemlint.syntax.outline import dotted

MAX_FILES = 12  # parsed for one attribute


def has_no_parameters(facts: FileFacts, call: ModuleCall) -> bool:
    """Is all that the project puts into an attribute of the called module's name made of buffers alone, or of nothing?

    `self.normalizer(x)`, where another file has `self.normalizer = torch.jit.script(RunningMeanStd(shape))`: without
    parameters there is no graph.
    """
    module = call.module
    owner, _, name = call.callee.rpartition(".")
    if module is None or module.cls is not None or module.qualified or not owner or not name.isidentifier():
        return False
    known = [_makes_parameters(program, value, name) for program, value in _assigned(facts, name)]
    told = [makes for makes in known if makes is not None]
    return bool(told) and not any(told)


def _assigned(facts: FileFacts, name: str) -> Iterator[tuple[Program, ast.expr]]:
    for program in _programs(facts, f".{name} ="):
        for piece in program.source.pieces:
            if piece.outline is None or name not in piece.text:
                continue
            for node in ast.walk(piece.outline):
                targets = node.targets if isinstance(node, ast.Assign) else ()
                for target in targets:
                    if isinstance(target, ast.Attribute) and target.attr == name and isinstance(node, ast.Assign):
                        yield program, node.value


def _programs(facts: FileFacts, phrase: str) -> Iterator[Program]:
    yield facts.program
    project = facts.program.project
    found = project.mentioning(phrase, facts.path) if project is not None else None
    others = sorted(path for path in found or () if path != facts.path)
    if project is None or len(others) > MAX_FILES:
        return
    for path in others:
        program = project.program(path, Lead.CALLER, phrase, facts.path)
        if program is not None:
            yield program


def _makes_parameters(program: Program, value: ast.expr, name: str) -> bool | None:
    """Does an expression make a module with parameters, or something unknown? None: it hands one of the name on."""
    if isinstance(value, ast.Constant) and value.value is None:
        return None
    if isinstance(value, ast.IfExp):
        branches = [_makes_parameters(program, branch, name) for branch in (value.body, value.orelse)]
        told = [makes for makes in branches if makes is not None]
        return any(told) if told else None
    if isinstance(value, ast.Attribute) and value.attr == name:
        return None
    made = [node for node in ast.walk(value) if isinstance(node, ast.Call)]
    told = [makes for node in made if (makes := _class_has_parameters(program, dotted(node.func))) is not None]
    return any(told) if told else True


def _class_has_parameters(program: Program, path: str) -> bool | None:
    """None: it is no class of modules."""
    qualified = program.qualify(path)
    if program.contracts.is_module_class(qualified):
        return modules.has_parameters(qualified) is not False
    cls = program.find_class(path) or program.resolve(qualified)
    if not isinstance(cls, ClassInfo) or not cls.is_module:
        return None
    plain = all(base in ("torch.nn.Module", "object") for base in cls.external_bases())
    return not plain or cls.shows_layers or cls.builds_layers
