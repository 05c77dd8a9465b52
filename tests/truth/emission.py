"""Files of a program's sections: imports as each text needs them, marks taken out and remembered."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from .tables.words import FROM_MODULES, MODULES

Mark = tuple[str, int]  # a file and a line
_MARK = re.compile(r"\s*#@(\w+)")


@dataclass(frozen=True)
class Section:
    """Lines that belong together, at the top level of a file."""

    file: str
    lines: list[str]
    imports: list[str] = field(default_factory=list)


def emitted(sections: list[Section]) -> tuple[dict[str, str], dict[str, list[Mark]]]:
    """The text of each file, and the lines that each mark stands on."""
    names = list(dict.fromkeys(section.file for section in sections))
    bodies = {name: _joined([s.lines for s in sections if s.file == name]) for name in names}
    trees = {name: ast.parse("\n".join(lines)) for name, lines in bodies.items()}
    owners = {defined: name for name, tree in trees.items() for defined in _defined(tree)}
    files: dict[str, str] = {}
    marks: dict[str, list[Mark]] = {}
    for name, lines in bodies.items():
        own = [line for section in sections if section.file == name for line in section.imports]
        head = _head("\n".join(lines), _imports(trees[name], name, owners), own)
        text: list[str] = []
        for line in [*head, "", "", *lines]:
            for mark in _MARK.findall(line):
                marks.setdefault(mark, []).append((name, len(text) + 1))
            text.append(_MARK.sub("", line))
        files[name] = "\n".join(text) + "\n"
    return files, marks


def _joined(parts: list[list[str]]) -> list[str]:
    """The parts with two empty lines between them, and never more."""
    lines: list[str] = []
    for part in parts:
        lines += ["", "", *part] if lines else part
    return lines


def _defined(tree: ast.Module) -> set[str]:
    found: set[str] = set()
    for statement in tree.body:
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            found.add(statement.name)
        elif isinstance(statement, ast.Assign):
            found |= {target.id for target in statement.targets if isinstance(target, ast.Name)}
    return found


def _imports(tree: ast.Module, file: str, owners: dict[str, str]) -> list[str]:
    """What the file takes from the program's other files."""
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    needed: dict[str, list[str]] = {}
    for name in sorted(used - _defined(tree)):
        if owners.get(name, file) != file:
            needed.setdefault(owners[name].removesuffix(".py"), []).append(name)
    return [f"from {module} import {', '.join(names)}" for module, names in sorted(needed.items())]


def _head(text: str, imports: list[str], own: list[str]) -> list[str]:
    """The imports of a file."""
    standard = [f"import {word}" for word in MODULES if re.search(rf"(?<![.\w]){word}\.", text)]
    for module, names in FROM_MODULES.items():
        if found := [name for name in names if re.search(rf"(?<![.\w]){name}\b", text)]:
            standard.append(f"from {module} import {', '.join(found)}")
    torch = ["import torch"]
    if re.search(r"\bF\.", text):
        torch.append("import torch.nn.functional as F")
    if re.search(r"\bnn\.", text):
        torch.append("from torch import nn")
    if "DataLoader(" in text:
        torch.append("from torch.utils.data import DataLoader, TensorDataset")
    if "checkpoint(" in text:
        torch.append("from torch.utils.checkpoint import checkpoint")
    local = sorted({*imports, *own})
    groups = [group for group in (standard, torch, local) if group]
    return [line for i, group in enumerate(groups) for line in (["", *group] if i else group)]
